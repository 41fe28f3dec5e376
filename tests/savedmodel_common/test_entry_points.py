"""Entry points read from their file are those that `importlib.metadata` finds."""

import importlib.metadata
import sys

import pytest

from savedmodel_common import entry_points, fast
from savedmodel_common.fast import entry_point_files

TEXT = """
# ours
[savedmodel_compat.commands]
inspect = savedmodel_tools.commands.inspect:inspect
  edit.slim=savedmodel_tools.commands.parts.edit_slim:slim

[console_scripts]
savedmodel-compat = savedmodel_compat.cli:main
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution of some entry points, which is found before the installed one."""

    def install(name, text=TEXT):
        (tmp_path / name).mkdir()
        (tmp_path / name / "METADATA").write_text("Name: savedmodel-compat\nVersion: 9\n")
        if text is not None:
            (tmp_path / name / "entry_points.txt").write_text(text)

    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return install


def of_metadata():
    found = importlib.metadata.distribution("savedmodel-compat").entry_points
    return sorted((point.group, point.name, point.value) for point in found)


def test_the_installed_entry_points_are_read_as_importlib_reads_them():
    assert sorted(entry_point_files.entry_points("savedmodel-compat")) == of_metadata()


def test_the_first_folder_of_the_path_counts(installed):
    installed("Savedmodel_Compat-9.dist-info")
    assert sorted(entry_point_files.entry_points("savedmodel-compat")) == of_metadata()
    assert len(of_metadata()) == 3


@pytest.mark.parametrize(
    "name, text",
    [
        ("savedmodel_compat-9.egg-info", TEXT),
        ("savedmodel_compat-9.dist-info", None),
        ("savedmodel_compat-9.dist-info", "[a]\nno equals sign\n"),
    ],
    ids=["another kind of installation", "no file", "damaged"],
)
def test_what_the_file_does_not_say_is_left_to_importlib(installed, name, text):
    installed(name, text)
    assert entry_point_files.entry_points("savedmodel-compat") is None


def test_an_archive_before_the_folder_is_left_to_importlib(monkeypatch, tmp_path):
    (tmp_path / "archive.zip").write_bytes(b"")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "archive.zip"), *sys.path])
    assert entry_point_files.entry_points("savedmodel-compat") is None


def test_the_plain_way_gives_the_same(monkeypatch):
    quick = entry_points._all.__wrapped__()
    monkeypatch.setenv(fast.PLAIN, "1")
    assert not fast.is_on()
    monkeypatch.setattr(entry_point_files, "entry_points", None)  # must not be called
    assert entry_points._all.__wrapped__() == quick


def test_every_entry_point_of_ours_can_be_loaded():
    point = entry_points.own(entry_points.COMMANDS)["inspect"]
    assert point.load().name == "inspect"
    assert point.module == "savedmodel_tools.commands.inspect"
