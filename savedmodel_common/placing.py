"""A model's files in another folder, by hard links where the system allows it, without anything
from outside of the model.

A hard link is the author's file. So a model that may write files is copied: a server or a loader
that it makes write changes the copy.

A symbolic link inside the model becomes its target. A link that leaves the model is refused, and so
is anything that is neither a file nor a folder.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from savedmodel_common.writing_models import may_write

MAX_FILES = 100_000


class Unstageable(Exception):
    """Raised when the files of a folder cannot be placed elsewhere."""


def place(model: Path, target: Path, follow_links: bool = False) -> None:
    """Make the folder ``target``, or fill an empty one, with the files of a model.

    Symbolic links become what they lead to.

    Raises Unstageable (a link leads out of the model, and not ``follow_links``; too many files; a
    device), OSError.
    """
    root = model.resolve()
    if not root.is_dir():
        raise Unstageable(f"{model} is not a folder")
    target.mkdir(parents=True, exist_ok=True)
    copied = may_write(root)
    for number, (source, relative, is_folder) in enumerate(
        _walk(None if follow_links else root, root)
    ):
        if number > MAX_FILES:
            raise Unstageable(f"{model} holds more than {MAX_FILES} files")
        if is_folder:
            (target / relative).mkdir(exist_ok=True)
        elif copied:
            shutil.copyfile(source, target / relative)
        else:
            _link(source, target / relative)


def _walk(
    root: Path | None, folder: Path, below: Path = Path(), depth: int = 0
) -> Iterator[tuple[Path, Path, bool]]:
    """``(file, its path in the model, whether it is a folder)`` of all that is below ``folder``; no
    link may leave ``root``.
    """
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
        raise Unstageable(
            f"{link.name} is a symbolic link out of the model's folder, to {target}; copy the file"
            " into the model"
        )
    return target


def _link(source: Path, target: Path) -> None:
    """A hard link, or a copy: on another file system, of another user, or where the server could
    not read the file itself.
    """
    found = source.stat()
    if not hasattr(os, "getuid") or found.st_uid == os.getuid() or found.st_mode & stat.S_IROTH:
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copyfile(source, target)
