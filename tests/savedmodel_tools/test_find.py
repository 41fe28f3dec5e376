"""Models in arguments: paths, trees, lists, URLs."""

import os
import subprocess
import sys

import layout_models
import pytest

from savedmodel_tools import remote
from savedmodel_tools.find import find
from savedmodel_tools.place import Unusable


def names(found):
    return [model.name for model in found.models]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A zoo: one model a level down, a server's versions, a text model, and a folder without
    any.
    """
    monkeypatch.chdir(tmp_path)
    for name in ("zoo/b/1", "zoo/b/10", "zoo/a"):
        layout_models.save(tmp_path / name)
    layout_models.put(tmp_path / "zoo/c/d", "saved_model.pbtxt", b"saved_model_schema_version: 1")
    layout_models.put(
        tmp_path / "zoo/a", "assets/saved_model.pb", b"an asset of that name is no model"
    )
    (tmp_path / "zoo/empty").mkdir()
    return tmp_path


def test_a_tree_in_the_order_of_its_names(tree):
    found = find(["zoo"])
    assert [(m.name, m.relative, m.file) for m in found.models] == [
        ("zoo/a", "a", "saved_model.pb"),
        ("zoo/b/1", "b/1", "saved_model.pb"),
        ("zoo/b/10", "b/10", "saved_model.pb"),
        ("zoo/c/d", "c/d", "saved_model.pbtxt"),
    ]
    assert found.skipped == []
    with found.models[0].local() as path:
        assert path.samefile(tree / "zoo/a")


def test_one_model_a_file_of_one_and_the_same_again(tree):
    found = find(["zoo/b/10/", "zoo/c/d/saved_model.pbtxt", "zoo/b/10", "zoo/b"])
    assert [(m.name, m.relative) for m in found.models] == [
        ("zoo/b/10/", "10"),
        ("zoo/c/d/saved_model.pbtxt", "saved_model.pbtxt"),
        ("zoo/b/1", "1"),
    ]


def test_lists(tree):
    (tree / "list.txt").write_text("# mine\n\n  zoo/b/1  \nzoo/a\n", encoding="utf-8")
    assert names(find(["@list.txt", "zoo/b/10"])) == ["zoo/b/1", "zoo/a", "zoo/b/10"]
    (tree / "binary").write_bytes(b"\xff\xfe")
    for name in ("@absent", "@binary", "@zoo"):
        with pytest.raises(Unusable, match="cannot be read"):
            find([name])


@pytest.mark.parametrize("argument", ["absent", "zoo/empty", "zoo\0", "list.txt"])
def test_what_names_no_model_is_refused(tree, argument):
    (tree / "list.txt").write_text("zoo", encoding="utf-8")
    with pytest.raises(Unusable, match=r"no such file|no SavedModel|neither"):
        find([argument])
    with pytest.raises(Unusable, match="no model"):
        find([])


def test_links_out_of_the_tree_are_named_and_not_followed(tree):
    layout_models.save(tree / "outside/model")
    (tree / "zoo/b/link").symlink_to(tree / "outside")
    (tree / "zoo/c/inside").symlink_to(tree / "zoo/a")
    (tree / "zoo/c/circle").symlink_to("circle")
    found = find(["zoo"])
    assert names(found) == ["zoo/a", "zoo/b/1", "zoo/b/10", "zoo/c/d"]
    (skipped,) = found.skipped
    assert skipped.name == "zoo/b/link" and str(tree / "outside") in skipped.reason
    followed = find(["zoo"], follow_links=True)
    assert names(followed) == ["zoo/a", "zoo/b/1", "zoo/b/10", "zoo/b/link/model", "zoo/c/d"]
    assert followed.skipped == []
    (tree / "outside/back").symlink_to(tree)
    assert len(find(["zoo"], follow_links=True).models) == 5


def test_a_folder_of_links_holds_no_model(tree):
    (tree / "links").mkdir()
    for name in ("one", "two"):
        (tree / "links" / name).symlink_to(tree / "zoo" / "b")
    with pytest.raises(
        Unusable,
        match=r"links/one .*--follow-links.*1 more",
    ):
        find(["links"])
    assert len(find(["links"], follow_links=True).models) > 0


def test_what_cannot_be_a_model_is_told(tree):
    layout_models.put(tree / "zoo/unfinished", "variables/variables.index", b"")
    os.mkfifo(tree / "zoo/empty/saved_model.pb")
    found = find(["zoo"])
    assert [item.name for item in found.skipped] == ["zoo/empty", "zoo/unfinished"]
    assert "regular file" in found.skipped[0].reason and "not finished" in found.skipped[1].reason
    assert len(find(["zoo/unfinished"]).skipped) == 1


def test_a_directory_that_cannot_be_listed_is_told(tree, monkeypatch):
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("b"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find(["zoo"])
    assert names(found) == ["zoo/a", "zoo/c/d"]
    assert found.skipped[0].name == "zoo/b" and "Permission denied" in found.skipped[0].reason


def test_a_url_without_its_package_names_the_package(tree):
    """In a process of its own, where nothing has imported fsspec."""
    program = (
        "import sys; sys.modules['fsspec'] = None\n"
        "from savedmodel_tools.find import Unusable, find\n"
        "try: find(['gs://bucket/zoo'])\n"
        "except Unusable as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8"
    )
    assert "gs://bucket/zoo: " in done.stdout and "'fsspec[gs]'" in done.stdout, done.stderr


def test_a_file_url_needs_no_package(tree):
    assert len(find([(tree / "zoo").as_uri()]).models) == 4


@pytest.fixture
def bucket():
    """An in-memory file system of fsspec with a zoo of two models."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (extra dev)")
    memory = fsspec.filesystem("memory")
    memory.pipe(
        {
            "/zoo/m/saved_model.pb": b"12345",
            "/zoo/m/variables/variables.index": b"678",
            "/zoo/n/1/saved_model.pb": b"9",
        }
    )
    yield memory
    memory.rm("/zoo", recursive=True)


def test_a_remote_tree_is_listed_and_copied_when_asked_for(bucket):
    found = find(["memory://zoo"])
    assert [(m.name, m.relative) for m in found.models] == [
        ("memory://zoo/m", "m"),
        ("memory://zoo/n/1", "n/1"),
    ]
    with found.models[0].local() as path:
        assert (path / "saved_model.pb").read_bytes() == b"12345"
        assert (path / "variables/variables.index").read_bytes() == b"678"
    assert not path.exists()
    with find(["memory://zoo/n/1/saved_model.pb"]).models[0].local() as path:
        assert path.read_bytes() == b"9"
    with pytest.raises(Unusable, match="no such file"):
        find(["memory://nothing"])


def test_a_remote_model_larger_than_the_limit_is_not_copied(bucket, monkeypatch):
    monkeypatch.setattr(remote, "MAX_BYTES", 6)
    with (
        pytest.raises(remote.Unreachable, match="larger than 6 bytes"),
        find(["memory://zoo/m"]).models[0].local(),
    ):
        pass


def test_errors_of_a_store_are_one_error(bucket, monkeypatch):
    model = find(["memory://zoo/m"]).models[0]

    def fail(*args, **kwargs):
        raise RuntimeError("throttled")

    monkeypatch.setattr(type(bucket), "open", fail)
    with pytest.raises(OSError, match="memory://zoo/m: RuntimeError: throttled"), model.local():
        pass


def test_a_scheme_that_nobody_knows_is_refused():
    pytest.importorskip("fsspec", reason="fsspec is not installed (extra dev)")
    with pytest.raises(Unusable, match="nosuch"):
        find(["nosuch://bucket"])
