"""Private copies of models that may write on their own files, so that no loader changes a model
that it is asked about.

Loaders hand a model the paths of its checkpoint and its assets. A restore op that saves, or an
initialiser that writes an asset, changes the files there. Other models are opened where they are,
so they cost one search through their graph.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from savedmodel_common.writing_models import writes

LARGEST = 64 << 20  # bytes of a graph whose answer is kept; reading it costs as much as searching
Stamp = tuple[tuple[str, int, int], ...]


class PrivateCopies:
    """The copies below a folder, by the model's directory and its state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[tuple[Path, Stamp], Path] = {}
        self._writes: dict[bytes, bool] = {}  # digest of a graph -> whether something in it writes

    def of(self, directory: Path, stamp: Stamp) -> Path:
        """Return the directory to open in place of a model: its own, or that of a copy.

        `stamp` are the names, sizes and times of the model's files.
        """
        key = (directory, stamp)
        if key not in self._opened:
            self._opened[key] = self._copy(directory) if self._may_write(directory) else directory
        return self._opened[key]

    def _may_write(self, directory: Path) -> bool:
        """Return whether a model may write; search the graph once for all copies of a model."""
        digest = _digest(directory / "saved_model.pb")
        if digest in self._writes:
            return self._writes[digest]
        answer = writes(directory)
        if digest and answer is not None:
            self._writes[digest] = answer
        return bool(answer)

    def _copy(self, directory: Path) -> Path:
        target = self._folder / str(len(self._opened)) / directory.name
        shutil.copytree(directory, target, ignore=_special_files)
        return target


def _digest(graph: Path) -> bytes:
    """Return the digest of a file, or nothing if it is not a plain file or too large."""
    if not graph.is_file() or graph.stat().st_size > LARGEST:
        return b""
    return hashlib.sha256(graph.read_bytes()).digest()


def _special_files(folder: str, names: list[str]) -> list[str]:
    """Return the names that are not copied: pipes, devices, and links that lead nowhere."""
    paths = [(name, os.path.join(folder, name)) for name in names]  # noqa: PTH118
    return [name for name, path in paths if not (os.path.isfile(path) or os.path.isdir(path))]  # noqa: PTH112, PTH113
