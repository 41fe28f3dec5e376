"""The only place where the format layer asks the file system for whole files, names and paths.

`Root` is a directory that a model may not look out of: a name that comes from a model is resolved by `Root.path`, and a
symbolic link inside the model counts only while its target is inside too. Other file systems can be added here.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import unicodedata
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Union

from reference_impl import errors
from reference_impl.format import limits
from reference_impl.format.container.regular_files import LINKS_IN_A_CIRCLE, map_file, special

AnyPath = Union[str, "os.PathLike[str]"]


class Root:
    """A directory with everything below it.

    Args:
      path: the directory, made absolute so that it survives a change of the working directory.
      follow_links: accept symbolic links that lead out of the directory (stores that keep files as links to blobs).

    RFC: RES-09
    """

    def __init__(self, path: AnyPath, *, follow_links: bool = False) -> None:
        self.directory = Path(os.path.abspath(path))  # noqa: PTH100  Path.absolute keeps ".."
        self.follow_links = follow_links
        self._real = os.path.realpath(self.directory)

    def path(self, name: str, *, node: Union[str, None] = None) -> Path:
        """The path of a name below this directory, which need not exist.

        Raises:
          PathEscapeError: absolute, "..", empty or with control characters on any system, or a link that leads out.
        """
        reason = refuse_name(name)
        if reason:
            raise errors.PathEscapeError(f"{name!r} {reason}", file=self.directory, node=node)
        path = self.directory / name
        real = os.path.realpath(path)
        if not self.follow_links and not _is_below(real, self._real):
            reason = f"{name!r} is a symbolic link out of the directory (accepted with follow_links)"
            raise errors.PathEscapeError(reason, file=self.directory, node=node)
        return path

    def exists(self, name: str) -> bool:
        """Return whether there is a file of that name.

        Raises:
          PathEscapeError: see `path`.
          FileAccessError: there is something else, such as a pipe (a directory is just not a file), or the system refuses to say.
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
        """Return the bytes of a file of that name. Raises MissingFileError, and what `exists` raises."""
        path = self.path(name)
        if not self.exists(name):
            raise errors.MissingFileError("no such file", file=path)
        try:
            return path.stat().st_size
        except OSError as error:
            raise access_error(error, path) from error

    def special(self) -> dict[str, str]:
        """Name -> what it is, of everything below this directory that is neither a file nor a directory: pipes, sockets, devices,
        links in a circle. Raises as `names`."""
        return {name: what for name in self.names() if (what := special(self.directory / name))}

    def read(self, name: str, limit: int, limit_name: str) -> bytes:
        """A whole file.

        Raises:
          PathEscapeError, MissingFileError, FileAccessError (also for what is no regular file), LimitError.
        """
        return read(self.path(name), limit, limit_name)

    def names(self, name: str = "") -> list[str]:
        """Sorted relative names of all files below a subdirectory; none if it does not exist.

        Links to directories are not entered.

        Raises:
          PathEscapeError, FileAccessError, LimitError.
        """
        start = self.path(name) if name else self.directory
        found: list[str] = []
        pending = [start]
        while pending:
            directory = pending.pop()
            try:
                entries = list(os.scandir(directory))
            except OSError as error:
                if directory == start and error.errno in (errno.ENOENT, errno.ENOTDIR):
                    return []
                raise access_error(error, directory) from error
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                else:
                    found.append(Path(entry.path).relative_to(start).as_posix())
            if len(found) + len(pending) > limits.DIRECTORY_ENTRIES:
                reason = f"more than {limits.DIRECTORY_ENTRIES} files"
                raise errors.LimitError(reason, file=start, limit="DIRECTORY_ENTRIES")
        return sorted(found)


def _refuse_special(path: Path) -> None:
    """Raise FileAccessError for a pipe, a socket, a device or a circle of links at ``path`` or above it."""
    for place in (path, *path.parents):
        if what := special(place):
            raise errors.not_a_file(what, place)


def _is_below(path: str, directory: str) -> bool:
    try:
        return os.path.commonpath([path, directory]) == directory
    except ValueError:  # another drive
        return False


def refuse_name(name: str) -> str:
    """Why a name from a model is no plain relative path on some system; empty if it is one."""
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


def read(path: AnyPath, limit: int, limit_name: str) -> bytes:
    """A whole file of at most `limit` bytes. Raises MissingFileError, FileAccessError, LimitError."""
    mapped = map_within(path, limit, limit_name)
    try:
        return mapped[:]
    finally:
        if not isinstance(mapped, bytes):
            mapped.close()


def map_within(path: AnyPath, limit: int, limit_name: str) -> Union[bytes, mmap.mmap]:
    """A file of at most `limit` bytes, mapped. Raises MissingFileError, FileAccessError, LimitError."""
    try:
        size = os.stat(path).st_size  # noqa: PTH116
    except OSError as error:
        raise access_error(error, path) from error
    except ValueError as error:  # NUL in the path
        raise errors.FileAccessError(str(error), file=path) from error
    if size > limit:
        raise errors.LimitError(f"{size} bytes, limit {limit}", file=path, limit=limit_name)
    return map_file(path)


def access_error(error: OSError, path: AnyPath) -> errors.SavedModelError:
    """The member of the family for an error of the operating system."""
    reason = error.strerror or str(error)
    if error.errno == errno.ENOENT:
        return errors.MissingFileError(reason, file=path)
    if error.errno == errno.ELOOP:
        return errors.not_a_file(LINKS_IN_A_CIRCLE, path)
    return errors.FileAccessError(reason, file=path)
