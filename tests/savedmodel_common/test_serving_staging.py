"""Staging: models as servers see them."""

from __future__ import annotations

import os

import pytest

from property_tests.attacks import effects, paths_of_ops
from savedmodel_common import staging


@pytest.fixture
def model(tmp_path):
    place = tmp_path / "half plus/two!" / "model"
    (place / "variables").mkdir(parents=True)
    (place / "saved_model.pb").write_bytes(b"x")
    (place / "variables/variables.index").write_bytes(b"y")
    (place / "empty").mkdir()
    return place


@pytest.fixture
def staged(tmp_path):
    return staging.Staging(tmp_path / "staged")


def test_models_are_hard_links_under_safe_names(model, staged):
    one, two = staged.add(model), staged.add(model)
    assert (one.name, two.name) == ("two_1", "two_2")
    place = staged.folder / "two_1" / "1"
    assert (place / "saved_model.pb").samefile(model / "saved_model.pb")
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*")) == [
        "empty",
        "saved_model.pb",
        "variables",
        "variables/variables.index",
    ]
    staged.remove(one)
    assert (
        not (staged.folder / "two_1").exists() and (model / "saved_model.pb").read_bytes() == b"x"
    )


@pytest.mark.parametrize(
    "attack",
    [paths_of_ops.write_given_checkpoint, paths_of_ops.write_own_asset, effects.write_when_called],
)
def test_a_model_that_may_write_is_copied(tmp_path, staged, attack):
    """What a server writes on a hard link is written on the source."""
    attack(tmp_path / "model")
    place = staged.folder / staged.add(tmp_path / "model").name / "1"
    sources = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert sources
    for source in sources:
        copy = place / source.relative_to(tmp_path / "model")
        assert copy.read_bytes() == source.read_bytes() and not copy.samefile(source)


def test_models_are_copied_where_links_fail(model, staged, monkeypatch):
    monkeypatch.setattr(
        os, "link", lambda *_: (_ for _ in ()).throw(OSError(18, "Invalid cross-device link"))
    )
    staged.add(model)
    copy = staged.folder / "two_1/1/saved_model.pb"
    assert copy.read_bytes() == b"x" and not copy.samefile(model / "saved_model.pb")


def test_file_that_only_another_user_may_read_is_copied(model, staged, monkeypatch):
    (model / "saved_model.pb").chmod(0o600)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    staged.add(model)
    place = staged.folder / "two_1/1"
    assert not (place / "saved_model.pb").samefile(model / "saved_model.pb")
    assert (place / "variables/variables.index").samefile(model / "variables/variables.index")


def test_link_inside_the_model_becomes_the_file(model, staged):
    (model / "again").symlink_to("saved_model.pb")
    (model / "folder").symlink_to("variables")
    staged.add(model)
    place = staged.folder / "two_1/1"
    assert (place / "again").read_bytes() == b"x" and (
        place / "folder/variables.index"
    ).read_bytes() == b"y"
    assert not any(path.is_symlink() for path in place.rglob("*"))


def test_what_cannot_be_staged_is_refused(model, staged, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("z")
    for name, make, why in [
        ("out", lambda path: path.symlink_to(secret), "symbolic link out of the model's folder"),
        ("up", lambda path: path.symlink_to("../.."), "symbolic link out of the model's folder"),
        ("itself", lambda path: path.symlink_to("."), "symbolic link out of the model's folder"),
        ("nothing", lambda path: path.symlink_to("nowhere"), "symbolic link to nothing"),
        ("loop", lambda path: path.symlink_to("loop"), "symbolic link to nothing"),
        ("variables/above", lambda path: path.symlink_to("../variables"), "without an end"),
        ("pipe", os.mkfifo, "neither a file nor a folder"),
    ]:
        make(model / name)
        with pytest.raises(staging.Unstageable, match=why):
            staged.add(model)
        (model / name).unlink()
    with pytest.raises(staging.Unstageable, match="a folder"):
        staged.add(model / "saved_model.pb")
    assert list(staged.folder.iterdir()) == []


def test_folder_that_is_itself_a_link(model, staged, tmp_path):
    (tmp_path / "linked").symlink_to(model)
    assert staged.add(tmp_path / "linked").name == "linked_1"
