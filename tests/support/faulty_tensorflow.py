"""A copy of the TensorFlow environment the tests run in, with faults: the gate must find them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def copy(place: Path, changes: Mapping[str, Callable[[str], str]]) -> Path:
    """A virtual environment with the same packages and ``changes``: file of tensorflow -> what its
    text becomes.

    Only the folders on the way to those files are folders of its own; all else is linked, so it
    costs no time and no space, and what is changed is not the file of the original. Returns the
    interpreter.
    """
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None
    assert spec.submodule_search_locations
    original = Path(spec.submodule_search_locations[0])
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(place)], check=True
    )
    site = next(place.glob("lib*/python3.*/site-packages"))
    (site / "original.pth").write_text(f"{original.parent}\n")
    _own(site / "tensorflow", original)
    for name, change in changes.items():
        *folders, _ = Path(name).parts
        for depth in range(len(folders)):
            _own(
                site / "tensorflow" / Path(*folders[: depth + 1]),
                original / Path(*folders[: depth + 1]),
            )
        target = site / "tensorflow" / name
        before = target.read_text(encoding="utf-8")
        after = change(before)
        assert after != before
        target.unlink()  # the link, not what it points at
        target.write_text(after, encoding="utf-8")
    return place / "bin" / "python"


def _own(folder: Path, original: Path) -> None:
    """Make ``folder`` a folder of links to all that is in ``original``, unless it is one
    already.
    """
    if folder.is_dir() and not folder.is_symlink():
        return
    if folder.is_symlink():
        folder.unlink()
    folder.mkdir()
    for entry in os.scandir(original):
        if (
            entry.name == "__pycache__"
        ):  # what a changed file is compiled to takes the place of a link, not of the original
            _own(folder / entry.name, Path(entry.path))
        else:
            (folder / entry.name).symlink_to(entry.path)
