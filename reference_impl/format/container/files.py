"""Files, names and paths of an untrusted directory.

`Root` is a directory that a model must not leave. `Root.path` resolves names that come from a
model; a symbolic link inside the model is accepted only if its target is inside too. Only regular
files are opened: a pipe would block its reader, a device has no end.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO, Optional, Union

from reference_impl.format import errors, limits

AnyPath = Union[str, "os.PathLike[str]"]

_LINKS_IN_A_CIRCLE = "a circle of symbolic links"
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a directory"),
)


def shown(path: AnyPath) -> str:
    """Return a path as messages show it: relative if it is below the current directory."""
    return os.fspath(path).removeprefix(f"{Path.cwd()}{os.sep}")


class Root:
    """A directory with everything below it.

    Args:
      path: the directory, made absolute so that it survives a change of the working directory.
      follow_links: accept symbolic links that lead out of the directory (stores that keep files as
        links to blobs).

    RFC: RES-09
    """

    def __init__(self, path: AnyPath, *, follow_links: bool = False) -> None:
        self.directory = Path(os.path.abspath(path))  # noqa: PTH100  Path.absolute keeps ".."
        self.follow_links = follow_links
        self._real = os.path.realpath(self.directory)

    def path(self, name: str, *, node: Union[str, None] = None) -> Path:
        """Return the path of a name below this directory.

        The path need not exist.

        Raises PathEscapeError: the name is absolute, empty, or contains ".." or control characters
        (on any system), or is a link that leads out.
        """
        reason = refuse_name(name)
        if reason:
            raise errors.PathEscapeError(
                f"{name!r} {reason}", file=self.directory, node=node, rule="SM-DIR-4"
            )
        path = self.directory / name
        real = os.path.realpath(path)
        if not self.follow_links and not _is_below(real, self._real):
            reason = (
                f"{name!r} is a symbolic link out of the directory (accepted with follow_links)"
            )
            raise errors.PathEscapeError(reason, file=self.directory, node=node, rule="SM-DIR-5")
        return path

    def exists(self, name: str) -> bool:
        """Return whether there is a file of that name.

        Raises PathEscapeError, and FileAccessError: it is a pipe or another special file, or the
        system denies access.
        """
        path = self.path(name)
        try:
            mode = path.stat().st_mode
        except OSError as error:
            if error.errno == errno.ENOENT:
                return False
            _refuse_special(path)
            if error.errno == errno.ENOTDIR:
                return False
            raise access_error(error, path) from error
        if not stat.S_ISREG(mode):
            _refuse_special(path)
            return False
        return True

    def size(self, name: str) -> int:
        """Return the size of a file in bytes.

        Raises MissingFileError and the errors of `exists`.
        """
        path = self.path(name)
        if not self.exists(name):
            raise errors.MissingFileError("no such file", file=path)
        with accessing(path):
            return path.stat().st_size

    def names(self, name: str = "") -> list[str]:
        """Return the sorted relative names of all files below a subdirectory; none if it does not
        exist.

        Links to directories are not entered. Raises PathEscapeError, FileAccessError, LimitError.
        """
        start = self.path(name) if name else self.directory
        found: list[str] = []
        pending = [(start, "")]
        while pending:
            directory, above = pending.pop()
            try:
                entries = list(os.scandir(directory))
            except OSError as error:
                if directory == start and error.errno in (errno.ENOENT, errno.ENOTDIR):
                    return []
                raise access_error(error, directory) from error
            if len(found) + len(pending) + len(entries) > limits.DIRECTORY_ENTRIES:
                reason = f"more than {limits.DIRECTORY_ENTRIES} files"
                raise errors.LimitError(reason, file=start, limit="DIRECTORY_ENTRIES")
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((Path(entry.path), f"{above}{entry.name}/"))
                else:
                    found.append(above + entry.name)
        return sorted(found)


def _refuse_special(path: Path) -> None:
    """Raise FileAccessError for a pipe, a socket, a device or a cycle of links at ``path`` or above
    it.
    """
    for place in (path, *path.parents):
        if what := special_kind(place):
            raise errors.not_a_file(what, place)


def _is_below(path: str, directory: str) -> bool:
    try:
        return os.path.commonpath([path, directory]) == directory
    except ValueError:  # another drive
        return False


def refuse_name(name: str) -> str:
    """Return why a name from a model is not a plain relative path on some system; empty if it is
    one.
    """
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    if not name or not posix.parts:
        return "is empty"
    if len(name.encode("utf-8", "surrogatepass")) > limits.FILE_NAME_BYTES:
        return "is too long"
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in name):
        return "holds a control character"
    if posix.is_absolute() or windows.drive or windows.root:
        return "is absolute"
    if ".." in posix.parts or ".." in windows.parts:
        return "leads out of the directory"
    return ""


def special_kind(path: AnyPath) -> str:
    """Return the kind of a path that is neither a regular file nor a directory, such as ``a named
    pipe``; empty otherwise.
    """
    try:
        kind = _kind(os.stat(path).st_mode)  # noqa: PTH116
    except (OSError, ValueError) as error:
        return _LINKS_IN_A_CIRCLE if getattr(error, "errno", None) == errno.ELOOP else ""
    return "" if kind == "a directory" else kind


def _kind(mode: int) -> str:
    """Return the kind of a path that is not a regular file; empty for a regular file."""
    return (
        ""
        if stat.S_ISREG(mode)
        else next((text for test, text in _KINDS if test(mode)), "something else")
    )


def read(path: AnyPath, limit: str) -> bytes:
    """Return the content of a regular file; `limit` is the name in `limits` of the limit on its
    size.

    Raises MissingFileError, FileAccessError, LimitError.
    """
    with open_regular(path, limit) as stream, accessing(path):
        return stream.read(os.fstat(stream.fileno()).st_size)


def open_regular(path: AnyPath, limit: Optional[str] = None) -> BinaryIO:
    """Open a regular file for reading. Arguments and errors are as in `read`."""
    return os.fdopen(_descriptor(path, limit), "rb")


def map_file(
    path: AnyPath, limit: Optional[str] = None, private: bool = False
) -> Union[bytes, mmap.mmap]:
    """Map a regular file, or return `b""` for an empty file, which cannot be mapped.

    Arguments and errors are as in `read`.

    Writes to a `private` mapping change neither the file nor other mappings of it. Shortening a
    file while it is mapped kills the process that reads it (SIGBUS), as for every memory-mapped
    file.
    """
    descriptor = _descriptor(path, limit)
    try:
        access = mmap.ACCESS_COPY if private else mmap.ACCESS_READ
        return mmap.mmap(descriptor, 0, access=access) if os.fstat(descriptor).st_size else b""
    except OSError as error:
        raise errors.FileAccessError(f"cannot be mapped: {error}", file=path) from None
    finally:
        os.close(descriptor)


def _descriptor(path: AnyPath, limit: Optional[str]) -> int:
    """Open a regular file without waiting, because the other end of a pipe may never open."""
    try:
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        )
    except FileNotFoundError:
        raise errors.MissingFileError("no such file", file=path) from None
    except (OSError, ValueError) as error:
        what = special_kind(path)
        if what:
            raise errors.not_a_file(f"cannot be opened: {what}", path) from None
        raise errors.FileAccessError(f"cannot be opened: {error}", file=path) from None
    status = os.fstat(descriptor)
    kind = _kind(status.st_mode)
    if kind:
        os.close(descriptor)
        raise errors.not_a_file(kind, path)
    if limit is not None and status.st_size > getattr(limits, limit):
        os.close(descriptor)
        raise errors.LimitError(
            f"{status.st_size} bytes, limit {getattr(limits, limit)}", file=path, limit=limit
        )
    return descriptor


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file or directory is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


@contextlib.contextmanager
def accessing(path: AnyPath) -> Iterator[None]:
    """Convert errors of the operating system to our own errors, which name `path`."""
    try:
        yield
    except errors.SavedModelError:
        raise
    except OSError as error:
        raise access_error(error, path) from error


def access_error(error: OSError, path: AnyPath) -> errors.SavedModelError:
    """Return our own error for an error of the operating system."""
    reason = error.strerror or str(error)
    if error.errno == errno.ENOENT:
        return errors.MissingFileError(reason, file=path)
    if error.errno == errno.ELOOP:
        return errors.not_a_file(_LINKS_IN_A_CIRCLE, path)
    return errors.FileAccessError(reason, file=path)
