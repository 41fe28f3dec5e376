"""Writing a SavedModel: whole or not at all."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from layout_models import model, put, save, write

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.container import layout, staging
from reference_impl.format.container.writer import LayoutWriter


def test_what_is_written_is_read(tmp_path):
    message = model(("serve",), ("train",))
    source = put(tmp_path, "source/vocab.txt", b"a\n")
    put(tmp_path, "source/ckpt.index", b"i")
    put(tmp_path, "source/ckpt.data-00000-of-00001", b"d")
    put(tmp_path, "source/ckpt-2.index", b"another")
    target = tmp_path / "parent" / "model"
    write(
        target,
        message,
        assets={"vocab.txt": source, "sub/b": b"b"},
        checkpoint=tmp_path / "source/ckpt",
    )
    read = layout.read(target)
    assert read.saved_model == message
    assert read.names == (
        "assets/sub/b",
        "assets/vocab.txt",
        "saved_model.pb",
        "variables/variables.data-00000-of-00001",
        "variables/variables.index",
    )
    assert (target / "assets/vocab.txt").read_bytes() == b"a\n"
    assert [path.name for path in target.parent.iterdir()] == ["model"]


def test_every_member_can_be_written(tmp_path):
    with LayoutWriter(tmp_path / "m") as out:
        out.saved_model(model(), text=True)
        out.fingerprint(schema.FingerprintDef(uuid="u"))
        out.debug_info(schema.GraphDebugInfo(files=["f"]))
        out.extra_asset("warmup", b"w")
        out.checkpoint_prefix.with_suffix(".index").write_bytes(b"")
    read = layout.read(tmp_path / "m")
    assert read.file.name == "saved_model.pbtxt"
    assert (read.fingerprint.uuid, list(read.debug_info.files), read.extra_assets) == (
        "u",
        ["f"],
        ("warmup",),
    )
    assert read.has_checkpoint


@pytest.mark.parametrize("exchange", [True, False])
def test_replacing_leaves_nothing_of_the_old_export(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(staging, "_exchange", lambda first, second: False)
    target = tmp_path / "m"
    write(target, model(("old",)), assets={"old.txt": b""})
    target.chmod(0o750)
    with pytest.raises(errors.FileAccessError, match="not empty"):
        write(target, model(("new",)))
    write(target, model(("new",)), assets={"new.txt": b""}, replace=True)
    assert layout.read(target).names == ("assets/new.txt", "saved_model.pb")
    assert target.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="open files are counted where Linux lists them"
)
@pytest.mark.parametrize("wait", [True, False])
def test_the_disk_has_everything_before_the_rename_if_that_is_wanted(tmp_path, monkeypatch, wait):
    synced, fsync = set(), os.fsync

    def noted(handle):
        assert not (tmp_path / "m").exists()
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    with LayoutWriter(tmp_path / "m", sync=wait) as out:
        out.asset("vocab.txt", b"words")
        out.saved_model(model())
    assert (
        {path.stat().st_ino for path in [tmp_path / "m", *(tmp_path / "m").rglob("*")]} == synced
    ) is wait
    assert bool(synced) is wait


def test_a_disk_that_does_not_take_it_leaves_the_old_export(tmp_path, monkeypatch):
    write(tmp_path / "m", model(), assets={"old": b""})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(errors.FileAccessError, match="No space left"):
        write(tmp_path / "m", model(), assets={"new": b""}, replace=True)
    assert [path.name for path in (tmp_path / "m/assets").iterdir()] == ["old"]


def test_no_file_stays_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    write(tmp_path / "new", model())
    write(tmp_path / "new", model(), replace=True)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_directory_with_other_things_is_not_replaced(tmp_path):
    save(tmp_path / "m")
    put(tmp_path / "m", "thesis.tex", b"years of work")
    with pytest.raises(errors.FileAccessError, match=r"thesis\.tex"):
        write(tmp_path / "m", model(), replace=True)
    assert (tmp_path / "m/thesis.tex").exists()


def test_a_failed_write_leaves_the_old_export(tmp_path):
    write(tmp_path / "m", model(("old",)))
    failures = {
        "asset missing": lambda out: out.asset("v", tmp_path / "absent"),
        "asset escapes": lambda out: out.asset("../../v", b""),
        "asset twice": lambda out: [out.asset("v", b"") for _ in range(2)],
        "version": lambda out: out.saved_model(model(version=3)),
        "empty": lambda out: out.saved_model(schema.SavedModel(saved_model_schema_version=1)),
        "nothing": lambda out: None,
        "the user's own": lambda out: 1 / 0,
    }
    caught = {}
    for name, fail in failures.items():
        with pytest.raises(Exception) as info, LayoutWriter(tmp_path / "m", replace=True) as out:
            fail(out)
        caught[name] = info.type
        assert layout.read(tmp_path / "m").tag_sets == (frozenset(["old"]),)
        assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert caught == {
        "asset missing": errors.MissingFileError,
        "asset escapes": errors.PathEscapeError,
        "asset twice": errors.DuplicateKeyError,
        "version": errors.SchemaVersionError,
        "empty": errors.NoMetaGraphError,
        "nothing": errors.NotASavedModelError,
        "the user's own": ZeroDivisionError,
    }


def test_a_target_that_is_a_file(tmp_path):
    put(tmp_path, "file", b"x")
    with pytest.raises(errors.FileAccessError):
        write(tmp_path / "file", model(), replace=True)
    with pytest.raises(errors.SavedModelError):
        write(tmp_path / "file" / "below", model())
    assert (tmp_path / "file").read_bytes() == b"x"


WRITE_FOR_EVER = """
import sys
from reference_impl.format import schema
from reference_impl.format.container.writer import LayoutWriter
number = 0
while True:
    number += 1
    model = schema.SavedModel(saved_model_schema_version=1)
    model.meta_graphs.add().meta_info_def.tags.append(str(number))
    with LayoutWriter(sys.argv[1], replace=True) as out:
        out.asset("number", str(number).encode())
        out.saved_model(model)
    if number == 1:
        print("started", flush=True)
"""


def test_a_kill_leaves_one_export_whole(tmp_path):
    """Killed at ten different moments, the directory holds graph and asset of one and the same
    export.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    seen = set()
    for attempt in range(10):
        target = tmp_path / str(attempt) / "model"
        command = [sys.executable, "-c", WRITE_FOR_EVER, str(target)]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "started\n"
            time.sleep(0.003 * attempt)
            process.send_signal(signal.SIGKILL)
        (tags,) = layout.read(target).tag_sets
        assert {(target / "assets/number").read_text()} == tags
        seen |= tags
    assert len(seen) > 1
