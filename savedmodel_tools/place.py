"""Where models lie: a directory or file of this machine; those behind a URL are in `remote`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Optional, Protocol


class Unusable(ValueError):
    """Raised when arguments name no model: a path that does not exist, an empty selection, a URL
    without its package.
    """


class Place(Protocol):
    """A directory or file to look for models in, here or elsewhere."""

    name: str
    remote: bool

    def kind(self) -> str:
        """``directory``, ``file`` or ``""`` for nothing."""

    def identity(self) -> str:
        """Two names of one place have one identity."""

    def entries(self) -> list[Entry]:
        """Return the content of the directory, by name. Raises OSError."""

    def below(self, name: str) -> Place:
        """A subdirectory."""

    def holds(self, name: str) -> bool:
        """Return whether a file of this relative name exists."""

    def local(self) -> contextlib.AbstractContextManager[Path]:
        """See `Model.local`."""


class Entry(NamedTuple):
    """A member of a directory.

    ``kind``: directory, file, link (to a directory outside of the tree), other.
    """

    name: str
    kind: str
    target: str = ""


class Local:
    """A path of this machine as given; ``follow_links``: links out of the tree at ``root``, a real
    path, count as directories.
    """

    remote = False

    def __init__(self, name: str, follow_links: bool = False, root: Optional[str] = None) -> None:
        self.name = name
        self.follow_links = follow_links
        self._root = root

    def kind(self) -> str:
        try:
            if os.path.isdir(self.name):  # noqa: PTH112
                return "directory"
            return "file" if os.path.isfile(self.name) else ""  # noqa: PTH113
        except ValueError:  # NUL in the path
            return ""

    def identity(self) -> str:
        return os.path.realpath(self.name)

    def entries(self) -> list[Entry]:
        root = self._root = self._root or self.identity()
        with os.scandir(self.name) as found:
            return sorted(self._entry(item, root) for item in found)

    def _entry(self, item: os.DirEntry[str], root: str) -> Entry:
        if not item.is_symlink():
            is_directory = item.is_dir(follow_symlinks=False)
            return Entry(
                item.name,
                (
                    "directory"
                    if is_directory
                    else "file"
                    if item.is_file(follow_symlinks=False)
                    else "other"
                ),
            )
        try:
            kind = "directory" if item.is_dir() else "file" if item.is_file() else "other"
        except OSError:  # a circle of links
            return Entry(item.name, "other")
        target = os.path.realpath(item.path)
        if kind == "directory" and not self.follow_links:
            # What is inside is met anyway under its own name.
            inside = target == root or target.startswith(root.rstrip(os.sep) + os.sep)
            return Entry(item.name, "other" if inside else "link", target)
        return Entry(item.name, kind)

    def below(self, name: str) -> Local:
        return Local(os.path.join(self.name, name), self.follow_links, self._root)  # noqa: PTH118  keeps the name as given

    def holds(self, name: str) -> bool:
        return os.path.isfile(os.path.join(self.name, *name.split("/")))  # noqa: PTH113,PTH118

    @contextlib.contextmanager
    def local(self) -> Iterator[Path]:
        yield Path(self.name)
