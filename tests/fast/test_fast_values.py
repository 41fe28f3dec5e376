"""`reference_impl.fast.values` and `checksum` against the plain code: the same values and errors."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from reference_impl import errors
from reference_impl.fast import checksum
from reference_impl.format.bundle.checksum import crc32c_of_array
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.writer import BundleWriter
from savedmodel_kit.forge import tables as forge

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

from reference_impl.fast import values  # noqa: E402  # imports TensorFlow
from reference_impl.functions import tensors  # noqa: E402

FLOAT = 1  # DT_FLOAT
MEBI = 1 << 20


@pytest.fixture
def copies():
    made = tensors.Copies()
    with contextlib.closing(made):
        yield made


def written(prefix):
    """A bundle in two shards: dtypes and sizes of all kinds, in an order that is not the keys'."""
    found = {
        "large": np.arange(MEBI, dtype=np.float32),
        "small": np.arange(12, dtype=np.float64).reshape(3, 4),
        "scalar": np.array(7, np.int64),
        "byte": np.array([5], np.uint8),  # what follows it is not aligned
        "after": np.arange(300, dtype=np.float32),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 3), np.float32),
        "half": np.arange(9, dtype=np.float16),
        "complex": np.array([1 + 2j], np.complex64),
        "huge": np.arange(5 * MEBI, dtype=np.int32),
        "middle": np.arange(MEBI // 5, dtype=np.float32),
        "middle again": np.arange(MEBI // 5, dtype=np.float32) + 1,
        "text": np.array([b"a", b"bc"], object),
    }
    with BundleWriter(prefix, num_shards=2) as writer:
        for number, (key, value) in enumerate(found.items()):
            writer.add(key, value, shard=number % 2)
        writer.add("brain", np.arange(5, dtype=np.uint16), "bfloat16", shard=1)
    return [*sorted(found), "brain"]


def numbers(found):
    return [(value.dtype, np.asarray(value).tolist()) for value in map(tf.convert_to_tensor, found)]


def test_values_are_the_same(tmp_path, copies):
    keys = written(tmp_path / "b")
    with BundleReader(tmp_path / "b") as reader:
        fast = list(values.read(reader, keys, copies))
        copies.finish()
        plain = [tensors.read_value(reader, key, copies) for key in keys]
        copies.finish()
        assert numbers(fast) == numbers(plain)


@pytest.mark.parametrize("batch", [1, 100, 1 << 21])
def test_a_key_may_come_twice_and_in_any_batch(tmp_path, copies, monkeypatch, batch):
    monkeypatch.setattr(values, "_BATCH", batch)
    monkeypatch.setattr(values, "_JOB", batch)
    keys = written(tmp_path / "b") * 2
    with BundleReader(tmp_path / "b") as reader:
        found = list(values.read(reader, keys, copies))
        copies.finish()
        half = len(keys) // 2
        assert numbers(found[:half]) == numbers(found[half:])
        assert list(values.read(reader, [], copies)) == []


def test_values_that_share_bytes_in_the_file_share_no_memory(tmp_path, copies):
    data = np.arange(8, dtype=np.float32).tobytes()
    parts = {b"a": (0, 32), b"b": (0, 32), b"c": (0, 4), b"d": (8, 16), b"e": (24, 32)}
    entries = {}
    for key, (start, end) in parts.items():
        shape = ((end - start) // 4,)
        entries[key] = forge.tensor(data[start:end], FLOAT, shape, offset=start)
    forge.bundle(tmp_path / "b", entries, data)
    with BundleReader(tmp_path / "b") as reader:
        found = list(values.read(reader, ["a", "b", "c", "d", "e"], copies))
        expected = [reader.read(key).tolist() for key in "abcde"]
    assert [array.tolist() for array in found] == expected
    for number, array in enumerate(found):
        array.fill(-1)
        assert [other.tolist() for other in found[number + 1 :]] == expected[number + 1 :]


def test_a_damaged_small_value_is_left_to_the_plain_code(tmp_path, copies):
    good, bad = (forge.tensor(bytes(4), FLOAT, (1,), offset=offset) for offset in (0, 4))
    forge.bundle(tmp_path / "b", {b"good": good, b"bad": bad}, bytes(4) + b"damage")
    with BundleReader(tmp_path / "b") as reader:
        (found,) = values.read(reader, ["good"], copies)
        assert found.tolist() == [0]
        with pytest.raises(ValueError, match="checksum"):
            list(values.read(reader, ["good", "bad"], copies))


def test_the_first_damaged_large_value_is_reported(tmp_path, copies):
    data = bytes(tensors._LARGE)
    shape = (len(data) // 4,)
    entries = {
        key: forge.tensor(data, FLOAT, shape, offset=number * len(data))
        for number, key in enumerate((b"a", b"b", b"c"))
    }
    forge.bundle(tmp_path / "b", entries, data + b"1" * len(data) * 2)
    with BundleReader(tmp_path / "b") as reader:
        with pytest.raises(errors.ChecksumError) as plain:
            reader.read("c")
        list(values.read(reader, ["a", "c", "b"], copies))
        with pytest.raises(errors.ChecksumError) as fast:
            copies.finish()
    assert str(fast.value) == str(plain.value)
    assert fast.value.node == "c"


def test_a_file_that_is_gone_is_still_mapped(tmp_path, copies):
    keys = ["huge", "large"]
    written(tmp_path / "b")
    with BundleReader(tmp_path / "b") as reader:
        expected = [reader.read(key).tolist() for key in keys]
        for path in tmp_path.iterdir():
            path.unlink()
        found = list(values.read(reader, keys, copies))
        copies.finish()
        assert [np.asarray(value).tolist() for value in found] == expected
        with pytest.raises(errors.MissingFileError):  # the plain code reads it from the mapping
            list(values.read(reader, ["small"], copies))


@pytest.mark.parametrize("without_library", [False, True])
def test_checksums_are_the_same(monkeypatch, without_library):
    if without_library:
        monkeypatch.setattr(checksum, "_EXTEND", None)
    data = np.random.default_rng(0).integers(0, 256, 100_000, np.uint8)
    for part in (data[:0], data[:1], data[3:1000], data):
        for crc in (0, 0xFFFFFFFF):
            assert checksum.crc32c_unlocked(part, crc) == crc32c_of_array(part, crc)
