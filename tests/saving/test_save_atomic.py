"""A save leaves the old export or the new one, whatever happens; and the bytes of an export depend
on nothing but the model.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import fresh_tensorflow
import pytest

import reference_impl
from reference_impl.format.container import layout

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def run(*arguments, **environment):
    command = [sys.executable, *map(os.fspath, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )


@pytest.mark.clause("API-04")
@pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed")
@pytest.mark.parametrize("way", ["exchange", "rename"])
def test_killed_at_any_moment_it_is_the_old_export_or_the_new_one(way, tmp_path):
    process = run(SUPPORT / "kill_points.py", way, tmp_path)
    lines = process.communicate()[0].split("\n")[:-1]
    assert process.returncode == 0 and len(lines) > 50
    after_kill, after_next = lines[::2], lines[1::2]
    assert set(after_next) == {"next 0"}  # which also removes what was left
    # Where directories cannot be exchanged there is a moment between two renames; both exports are
    # there then.
    allowed = {"old 0", "old 1", "new 0", "new 1"} | ({"nothing 2"} if way == "rename" else set())
    assert {"old 1", "new 0"} <= set(after_kill) <= allowed
    assert after_kill.count("nothing 2") <= 1


@pytest.mark.tensorflow
@pytest.mark.clause("API-04")
def test_a_killed_save_leaves_a_whole_export(tf, tmp_path):
    (tmp_path / "asset.txt").write_text("new")
    root = tf.Module()
    root.v = tf.Variable(1.0)
    expected = {
        "variables.data": 1.0,
        "saved_model.pb": 1.0,
        "shutil.rmtree": 2.0,
    }  # the last: when the old one goes
    for when, value in expected.items():
        reference_impl.save(root, tmp_path / when / "model")
        killed = fresh_tensorflow.run(SUPPORT / "kill_points.py", "save", tmp_path / when, when)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert len(names(tmp_path / when)) == 2
        loaded = tf.saved_model.load(str(tmp_path / when / "model"))
        assert float(loaded.v) == value and hasattr(loaded, "asset") == (value == 2.0)
        reference_impl.save(root, tmp_path / when / "model")
        assert names(tmp_path / when) == ["model"]


@pytest.mark.tensorflow
@pytest.mark.clause("API-04", "RES-13")
def test_a_model_can_be_saved_where_it_was_loaded_from(tf, tmp_path):
    (tmp_path / "words").write_text("ant\nbee\n")
    index = tf.lookup.TextFileIndex
    file = tf.lookup.TextFileInitializer(
        str(tmp_path / "words"), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    root.table = tf.lookup.StaticHashTable(file, -1)
    root.f = tf.function(
        lambda word: root.table.lookup(word), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    reference_impl.save(root, tmp_path / "m")
    (tmp_path / "words").unlink()
    for value in (3.0, 4.0):
        loaded = reference_impl.load(tmp_path / "m")
        loaded.v.assign([value, value])
        reference_impl.save(loaded, tmp_path / "m")
        assert loaded.v.numpy().tolist() == [value, value]
        assert loaded.f(tf.constant(["bee"])).numpy().tolist() == [1]
        reference_impl.save(loaded, tmp_path / "m")
    again = tf.saved_model.load(str(tmp_path / "m"))
    assert again.v.numpy().tolist() == [4.0, 4.0] and again.f(
        tf.constant(["bee"])
    ).numpy().tolist() == [1]


@pytest.fixture
def replaced_while_read(monkeypatch):
    """``replaced_while_read(write)``: ``write`` is called when the MetaGraphs of an export were
    read, and nothing else yet.
    """

    def arrange(write):
        read = layout.read_message

        def read_message(file):
            message = read(file)
            monkeypatch.undo()
            write()
            return message

        monkeypatch.setattr(layout, "read_message", read_message)

    return arrange


@pytest.mark.clause("API-04")
def test_what_is_inspected_is_of_one_export(tmp_path, replaced_while_read):
    from kill_points import write

    from reference_impl.views.model import inspect

    for times in (1, 2):  # after the second its directory could have the number of the first
        write(tmp_path / "m", "old")
        replaced_while_read(
            lambda times=times: [write(tmp_path / "m", "new") for _ in range(times)]
        )
        assert inspect(tmp_path / "m").meta_graphs[0].tags == ("new",)


@pytest.mark.tensorflow
@pytest.mark.clause("API-04")
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_a_load_that_meets_a_replacement_reads_the_new_export(
    tf, tmp_path, replaced_while_read, caplog, writer
):
    """Also when the other has other variables, and their absence is what would be told."""
    save = reference_impl.save if writer == "ours" else tf.saved_model.save
    root, other = tf.Module(), tf.Module()
    root.v, other.w = tf.Variable(1.0), tf.Variable(2.0)
    for saved in (root, other):
        reference_impl.save(root, tmp_path / "m")
        replaced_while_read(lambda saved=saved: save(saved, str(tmp_path / "m")))
        loaded = reference_impl.load(tmp_path / "m")
        assert float(loaded.v if saved is root else loaded.w) == float(
            root.v if saved is root else other.w
        )
        assert [
            record.levelname for record in caplog.records if "is read again" in record.getMessage()
        ] == ["WARNING"]
        caplog.clear()


@pytest.mark.tensorflow
@pytest.mark.clause("API-04")
def test_a_load_in_a_graph_leaves_nothing_twice(tf, tmp_path, replaced_while_read):
    from reference_impl import errors

    root = tf.Module()
    root.v = tf.Variable(1.0)
    reference_impl.save(root, tmp_path / "m")
    replaced_while_read(lambda: reference_impl.save(root, tmp_path / "m"))
    with (
        tf.Graph().as_default(),
        pytest.raises(errors.FileAccessError, match="another export"),
    ):
        reference_impl.load(tmp_path / "m")


@pytest.mark.tensorflow
@pytest.mark.clause("API-04")
def test_an_export_that_is_away_for_a_moment_is_found_again(
    tf, tmp_path, replaced_while_read, monkeypatch
):
    """A deployment that removes the old directory and then renames the new one into its place."""
    root, other = tf.Module(), tf.Module()
    root.v, other.v = tf.Variable(1.0), tf.Variable(2.0)
    reference_impl.save(root, tmp_path / "m")
    reference_impl.save(other, tmp_path / "next")
    tries = []

    def pause(_seconds):
        tries.append(None)
        if len(tries) == 2:
            (tmp_path / "next").rename(tmp_path / "m")

    replaced_while_read(lambda: shutil.rmtree(tmp_path / "m"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout.time, "sleep", pause)
        assert float(reference_impl.load(tmp_path / "m").v) == 2.0
    assert len(tries) == 2


@pytest.mark.tensorflow
@pytest.mark.clause("API-04")
@pytest.mark.skipif(
    os.name != "posix", reason="directories that are read cannot be replaced elsewhere"
)
def test_loads_beside_a_process_that_replaces_the_export_never_fail(tf, tmp_path):
    """Each load is of one export: all variables have the value that one save gave them."""
    root = tf.Module()
    root.parts = [tf.Variable([0.0]) for _ in range(4)]
    reference_impl.save(root, tmp_path / "m")
    writer = run(SUPPORT / "replacing_saves.py", tmp_path / "m", tmp_path / "stop")
    seen = set()
    try:
        while len(seen) < 8:
            loaded = reference_impl.load(tmp_path / "m")
            (value,) = {float(part[0]) for part in loaded.parts}
            seen.add(value)
    finally:
        (tmp_path / "stop").touch()
        writer.communicate()
    assert writer.returncode == 0


def test_a_living_stage_is_not_swept(tmp_path):
    from layout_models import write

    from reference_impl.format import schema
    from reference_impl.format.container.writer import LayoutWriter

    message = schema.SavedModel(saved_model_schema_version=1)
    message.meta_graphs.add()
    with LayoutWriter(tmp_path / "m", replace=True) as out:
        write(tmp_path / "m", message, replace=True)  # somebody else at the same time
        write(tmp_path / "m.2", message)
        assert out.stage.is_dir()
        out.saved_model(message)
    assert names(tmp_path) == ["m", "m.2"]
    foreign = tmp_path / ".m.mine.staged"
    foreign.mkdir()
    write(tmp_path / "m", message, replace=True)
    assert foreign.is_dir()  # nothing that we have not made


def test_an_export_that_was_put_aside_comes_back(tmp_path):
    from layout_models import write

    from reference_impl import errors
    from reference_impl.format import schema
    from reference_impl.format.container.writer import LayoutWriter

    message = schema.SavedModel(saved_model_schema_version=1)
    message.meta_graphs.add()
    write(tmp_path / "m", message)
    (tmp_path / "m").rename(tmp_path / ".m.1-0123abcd.replaced")
    with pytest.raises(errors.FileAccessError, match="not empty"), LayoutWriter(tmp_path / "m"):
        pass
    assert names(tmp_path) == ["m"] and layout.read(tmp_path / "m").saved_model == message


def same_files(first, second):
    found = [
        sorted(path.relative_to(top) for path in top.rglob("*") if path.is_file())
        for top in (first, second)
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 30
    _, different, odd = filecmp.cmpfiles(
        first, second, [str(name) for name in found[0]], shallow=False
    )
    assert different + odd == []


@pytest.mark.tensorflow
@pytest.mark.clause("GOAL-13")
def test_another_save_or_process_writes_the_same_bytes(tf, tmp_path):
    """Models with variables, containers, tables, assets, custom gradients, optimizers, generators,
    of Keras 3.
    """
    pytest.importorskip("keras", minversion="3")
    children = [
        run(
            SUPPORT / "varied_models.py",
            tmp_path / seed,
            PYTHONHASHSEED=seed,
            TF_ENABLE_ONEDNN_OPTS="0",
        )
        for seed in ("1", "77")
    ]
    for child in children:
        child.communicate()
        assert child.returncode == 0
    same_files(tmp_path / "1" / "once", tmp_path / "1" / "twice")
    same_files(tmp_path / "1" / "once", tmp_path / "77" / "once")
