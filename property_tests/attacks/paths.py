"""Attacks by paths: links, names and tags that lead out of the directory of a SavedModel, and a
pipe in it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from property_tests.attacks import forge
from property_tests.attacks.naming import ESCAPES

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
SECRET = "outside/secret"  # beside the model's directory


def _secret(folder: Path) -> Path:
    """A file that no reader of the model has any business with."""
    path = folder.parent / SECRET
    path.parent.mkdir(exist_ok=True)
    path.write_text("secret")
    return path


def _asset(folder: Path, name: str) -> None:
    message = forge.model()
    definition = message.meta_graphs[0].asset_file_def.add(filename=name)
    definition.tensor_info.name = "asset:0"
    graph = message.meta_graphs[0].graph_def
    forge.constant(graph, "asset", b"x")
    _secret(folder)
    forge.write(folder, message)


def asset_up(folder: Path) -> None:
    """An asset called ../../outside/secret."""
    _asset(folder, "../../outside/secret")


def asset_absolute(folder: Path) -> None:
    """An asset called /etc/passwd."""
    _asset(folder, "/etc/passwd")


def asset_windows(folder: Path) -> None:
    r"""An asset called ..\..\outside\secret, a path on Windows."""
    _asset(folder, "..\\..\\outside\\secret")


def asset_link(folder: Path) -> None:
    """An asset that is a symbolic link out of the directory."""
    _asset(folder, "a.txt")
    (folder / "assets").mkdir()
    (folder / "assets" / "a.txt").symlink_to(_secret(folder))


def model_link(folder: Path) -> None:
    """A saved_model.pb that is a symbolic link out of the directory."""
    forge.write(folder.parent / "outside", forge.model())
    folder.mkdir()
    (folder / "saved_model.pb").symlink_to(folder.parent / "outside" / "saved_model.pb")


def variables_link(folder: Path) -> None:
    """A directory variables/ that is a symbolic link to another model's."""
    shutil.copytree(FIXTURES / "half_plus_two" / "model", folder)
    _secret(folder)
    (folder / "variables").rename(folder.parent / "outside" / "variables")
    (folder / "variables").symlink_to(folder.parent / "outside" / "variables")


def shard_link(folder: Path) -> None:
    """A shard that is a symbolic link to another file."""
    shutil.copytree(FIXTURES / "half_plus_two" / "model", folder)
    shard = folder / "variables" / "variables.data-00000-of-00001"
    outside = _secret(folder)
    outside.write_bytes(shard.read_bytes())
    shard.unlink()
    shard.symlink_to(outside)


def tags_as_paths(folder: Path) -> None:
    """Tags that are paths and control characters."""
    forge.write(folder, forge.model("../../outside", "/etc", ESCAPES))


def pipe(folder: Path) -> None:
    """A saved_model.pb that is a named pipe nobody writes to."""
    folder.mkdir()
    os.mkfifo(folder / "saved_model.pb")


def links_in_a_circle(folder: Path) -> None:
    """Links below assets/ and assets.extra/ that lead to each other, to themselves, and to the
    directory they lie in.
    """
    forge.write(folder, forge.model())
    for name in ("assets", "assets.extra"):
        (folder / name).mkdir()
        (folder / name / "a").symlink_to("b")
        (folder / name / "b").symlink_to("a")
        (folder / name / "self").symlink_to("self")
        (folder / name / "here").symlink_to(".")
