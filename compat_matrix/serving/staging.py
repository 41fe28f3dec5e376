"""Models side by side below one folder, as a server reads them: ``NAME/1/`` each, by hard links where the system allows it.

Anything that a server in a container cannot follow, or must not see, is kept out: a symbolic link inside the model becomes its
target; a link that leaves the model is refused, and so is anything that is neither file nor folder.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VERSION = 1
NAME_LENGTH = 60
MAX_FILES = 100_000


class Unstageable(Exception):
    """Raised when a server cannot be given the folder as it is."""


@dataclass(frozen=True)
class Staged:
    """A model as a server knows it. Its name is never used twice, because a server remembers the state of earlier models."""

    name: str
    model: Path


class Staging:
    """A folder of staged models."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._numbers = itertools.count(1)

    def add(self, model: Path) -> Staged:
        """Stage a model. Raises Unstageable, OSError."""
        staged = Staged(f"{_safe_name(model)}_{next(self._numbers)}", model)
        target = self.folder / staged.name / str(VERSION)
        # Renamed when complete: a server that looks for versions must not find half of one.
        part = self.folder / staged.name / "part"
        try:
            place(model, part)
            part.rename(target)
        except BaseException:
            self.remove(staged)
            raise
        return staged

    def remove(self, staged: Staged) -> None:
        shutil.rmtree(self.folder / staged.name, ignore_errors=True)


def place(model: Path, target: Path, follow_links: bool = False) -> None:
    """Make the folder ``target`` with what a model holds, links into it resolved; with ``follow_links`` also links out of it.

    Raises Unstageable, OSError.
    """
    root = model.resolve()
    if not root.is_dir():
        raise Unstageable(f"{model} is no folder")
    target.mkdir(parents=True)
    for number, (source, relative, is_folder) in enumerate(_walk(None if follow_links else root, root)):
        if number > MAX_FILES:
            raise Unstageable(f"{model} holds more than {MAX_FILES} files")
        if is_folder:
            (target / relative).mkdir(exist_ok=True)
        else:
            _link(source, target / relative)


def size(model: Path) -> int:
    """Bytes of the files of a model; 0 where it cannot be read."""
    try:
        return sum(found.stat().st_size for found in model.rglob("*") if found.is_file())
    except OSError:
        return 0


def _safe_name(model: Path) -> str:
    """Of what the path says: the folder ``model`` of an artifact is named by the artifact's."""
    words = model.parent.name if model.name == "model" else model.name
    return re.sub(r"[^A-Za-z0-9_-]+", "_", words).strip("_")[:NAME_LENGTH] or "model"


def _walk(root: Path | None, folder: Path, below: Path = Path(), depth: int = 0) -> Iterator[tuple[Path, Path, bool]]:
    """``(file, its path in the model, whether it is a folder)`` of all that is below ``folder``; no link may leave ``root``."""
    if depth > 50:  # a link to a folder above itself
        raise Unstageable(f"{folder}: folders in folders without an end")
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        path, relative = Path(entry.path), below / entry.name
        if entry.is_symlink():
            path = _inside(root, path)
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            yield path, relative, True
            yield from _walk(root, path, relative, depth + 1)
        elif stat.S_ISREG(mode):
            yield path, relative, False
        else:
            raise Unstageable(f"{relative} is neither a file nor a folder")


def _inside(root: Path | None, link: Path) -> Path:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop, before Python 3.13
        raise Unstageable(f"{link.name} is a symbolic link to nothing: {error}") from None
    if root is not None and root not in target.parents:
        raise Unstageable(f"{link.name} is a symbolic link out of the model's folder, to {target}; copy the file into the model")
    return target


def _link(source: Path, target: Path) -> None:
    """A hard link, or a copy: on another file system, of another user, or where the server could not read the file itself."""
    found = source.stat()
    if not hasattr(os, "getuid") or found.st_uid == os.getuid() or found.st_mode & stat.S_IROTH:
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copyfile(source, target)
