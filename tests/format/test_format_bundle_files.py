"""Files of tensor bundles that are missing, cut off, or no files."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from reference_impl.errors import (
    ChecksumError,
    FileAccessError,
    MissingFileError,
    TruncatedError,
    V1CheckpointError,
)
from reference_impl.format.bundle.reader import BundleReader
from savedmodel_kit.forge import tables as forge

FOUR = np.float32([1, 2, 3, 4]).tobytes()


@pytest.fixture(autouse=True)
def bounded_memory():
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20


def good(prefix):
    return forge.bundle(prefix, {b"v": forge.tensor(FOUR, shape=(4,))}, FOUR)


def test_missing_index(tmp_path):
    with pytest.raises(MissingFileError) as caught:
        BundleReader(tmp_path / "b")
    assert caught.value.file == str(tmp_path / "b.index")


def test_missing_shard(tmp_path):
    good(tmp_path / "b")
    (tmp_path / "b.data-00000-of-00001").unlink()
    with BundleReader(tmp_path / "b") as reader:
        assert reader.keys() == ["v"]
        for use in (lambda: reader.read("v"), reader.verify_all):
            with pytest.raises(MissingFileError) as caught:
                use()
            assert caught.value.file == str(tmp_path / "b.data-00000-of-00001")


@pytest.mark.parametrize("size", [0, 1, 15])
def test_truncated_shard(tmp_path, size):
    good(tmp_path / "b")
    with (tmp_path / "b.data-00000-of-00001").open("r+b") as stream:
        stream.truncate(size)
    with (
        BundleReader(tmp_path / "b") as reader,
        pytest.raises(TruncatedError, match=f"within the shard's {size}"),
    ):
        reader.read("v", verify=False)


def test_empty_index(tmp_path):
    (tmp_path / "b.index").write_bytes(b"")
    with pytest.raises(TruncatedError):
        BundleReader(tmp_path / "b")


def test_index_that_is_a_folder(tmp_path):
    (tmp_path / "b.index").mkdir()
    with pytest.raises(FileAccessError, match="regular file"):
        BundleReader(tmp_path / "b")


@pytest.mark.parametrize("name", ["b.index", "b.data-00000-of-00001"])
def test_a_pipe_does_not_block(tmp_path, name):
    good(tmp_path / "b")
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with (
        pytest.raises(FileAccessError, match="regular file"),
        BundleReader(tmp_path / "b") as reader,
    ):
        reader.read("v")


def test_names_that_cannot_be_opened(tmp_path):
    (tmp_path / "loop.index").symlink_to("loop.index")
    for prefix in (tmp_path / "loop", str(tmp_path) + "/with\0zero", tmp_path / ("x" * 300)):
        with pytest.raises(FileAccessError, match="cannot be opened"):
            BundleReader(prefix)


def test_mapping_can_fail(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(12, "Cannot allocate memory")

    good(tmp_path / "b")
    monkeypatch.setattr("mmap.mmap", refuse)
    with pytest.raises(FileAccessError, match=r"cannot be mapped: .*allocate"):
        BundleReader(tmp_path / "b")


def test_format_v1_needs_more_than_a_file_of_that_name(tmp_path):
    (tmp_path / "b").write_bytes(b"something else")
    with pytest.raises(MissingFileError):
        BundleReader(tmp_path / "b")
    (tmp_path / "b").write_bytes(b"something else" + forge.MAGIC)
    with pytest.raises(V1CheckpointError):
        BundleReader(tmp_path / "b")


def test_a_name_cannot_write_to_the_terminal(tmp_path):
    forge.bundle(tmp_path / "b", {b"\x1b[2J": forge.tensor(FOUR, shape=(4,), crc=False)}, FOUR)
    with BundleReader(tmp_path / "b") as reader, pytest.raises(ChecksumError) as caught:
        reader.read("\x1b[2J")
    assert "\x1b" not in str(caught.value)


@pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="open files are counted where Linux lists them"
)
def test_no_file_stays_open(tmp_path):
    good(tmp_path / "b")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(3):
        with BundleReader(tmp_path / "b") as reader:
            reader.read("v")
    (tmp_path / "b.index").unlink()
    (tmp_path / "b.index").mkdir()
    for _ in range(3):
        with pytest.raises(FileAccessError):
            BundleReader(tmp_path / "b")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
