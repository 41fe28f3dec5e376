"""Models behind a URL, through the user's own fsspec package: listed remotely, copied when they are
read.

The other side is not trusted: names are those of a model's directory or they are refused, sizes are
counted while copying.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reference_impl.format import limits
from reference_impl.format.container import files
from savedmodel_tools.place import Entry, Place, Unusable

MAX_BYTES = (
    2**36
)  # of one model: four times the largest SavedModel message and a checkpoint beside it
_CHUNK = 2**22


class Unreachable(OSError):
    """The other side does not give what was asked for."""


def remote(url: str) -> Place:
    """Return the place of a URL.

    Raises Unusable: what fsspec needs for it is not installed; the message names the package.
    """
    scheme = url.partition("://")[0].partition("::")[0]
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise Unusable(
            f"{url}: reading {scheme}:// needs the package fsspec: pip install 'fsspec[{scheme}]'"
        ) from error
    try:
        filesystem, path = url_to_fs(url)
    except ImportError as error:  # fsspec's own words name what the scheme needs
        raise Unusable(f"{url}: {error}") from error
    except Exception as error:
        raise Unusable(f"{url}: {type(error).__name__}: {error}") from error
    return Remote(url.rstrip("/"), filesystem, str(path))


class Remote:
    """A directory or file behind a URL, in a file system that fsspec reaches."""

    remote = True

    def __init__(self, name: str, filesystem: Any, path: str) -> None:
        self.name = name
        self._filesystem = filesystem
        self._path = path

    def kind(self) -> str:
        with _errors(self.name):
            if self._filesystem.isdir(self._path):
                return "directory"
            return "file" if self._filesystem.isfile(self._path) else ""

    def identity(self) -> str:
        return f"{self._filesystem.protocol}:{self._path.rstrip('/')}"

    def entries(self) -> list[Entry]:
        found = {}
        with _errors(self.name):
            for item in self._filesystem.ls(self._path, detail=True):
                name = str(item["name"]).rstrip("/").rpartition("/")[2]
                if str(item["name"]).strip("/") == self._path.strip("/") or not name:
                    continue  # object stores list the marker of the folder itself
                kind = item.get("type")
                plain = (
                    kind in ("directory", "file")
                    and not item.get("islink")
                    and not files.refuse_name(name)
                )
                found[name] = Entry(name, str(kind) if plain else "other")
        return sorted(found.values())

    def below(self, name: str) -> Remote:
        return Remote(f"{self.name}/{name}", self._filesystem, f"{self._path.rstrip('/')}/{name}")

    def holds(self, name: str) -> bool:
        with _errors(self.name):
            return bool(self._filesystem.isfile(f"{self._path.rstrip('/')}/{name}"))

    @contextlib.contextmanager
    def local(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="savedmodel-") as folder:
            base = Path(folder) / "model"
            last = self._path.rstrip("/").rpartition("/")[2]
            room = shutil.disk_usage(folder).free * 9 // 10
            with _errors(self.name):
                if self._filesystem.isfile(self._path):
                    if files.refuse_name(last):
                        raise Unreachable(
                            f"{self.name}: the name {last!r} {files.refuse_name(last)}"
                        )
                    base.mkdir()
                    self._copy(self._path, base / last, min(room, MAX_BYTES))
                    base = base / last
                else:
                    self._copy_all(base, min(room, MAX_BYTES))
            yield base

    def _copy_all(self, base: Path, room: int) -> None:
        base.mkdir()
        pending: list[tuple[Remote, Path]] = [(self, base)]
        count = 0
        while pending:
            place, folder = pending.pop()
            for entry in place.entries():
                count += 1
                if count > limits.DIRECTORY_ENTRIES:
                    raise Unreachable(f"{self.name}: more than {limits.DIRECTORY_ENTRIES} files")
                inner = place.below(entry.name)
                if entry.kind == "directory":
                    (folder / entry.name).mkdir()
                    pending.append((inner, folder / entry.name))
                elif entry.kind == "file":
                    room -= self._copy(inner._path, folder / entry.name, room)
                else:
                    raise Unreachable(
                        f"{self.name}: {inner.name!r} is neither a plain file nor a folder"
                    )

    def _copy(self, source: str, target: Path, room: int) -> int:
        """Copy one file of at most ``room`` bytes; the bytes that it has, whatever the listing
        says.
        """
        size = 0
        with self._filesystem.open(source, "rb") as stream, target.open("xb") as out:
            while data := stream.read(_CHUNK):
                size += len(data)
                if size > room:
                    folder = os.path.dirname(target)  # noqa: PTH120
                    reason = f"larger than {MAX_BYTES} bytes or than the free part of {folder}"
                    raise Unreachable(f"{self.name}: {reason}")
                out.write(data)
        return size


@contextlib.contextmanager
def _errors(name: str) -> Iterator[None]:
    """Turn any error of a store's client, which need not be an OSError, into one error with the
    URL.
    """
    try:
        yield
    except Unreachable:
        raise
    except Exception as error:
        raise Unreachable(f"{name}: {type(error).__name__}: {error}") from error
