"""Opening files that nobody vouches for: a regular file, or not at all. A pipe would block its reader, a device has no end."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from typing import BinaryIO, Union

from reference_impl.errors import FileAccessError, MissingFileError, not_a_file

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a directory"),
)
LINKS_IN_A_CIRCLE = "a circle of symbolic links"


def special(path: Union[str, os.PathLike[str]]) -> str:
    """Return what a path is that is neither a regular file nor a directory: ``a named pipe``; empty for all others."""
    try:
        kind = _kind(os.stat(path).st_mode)  # noqa: PTH116
    except (OSError, ValueError) as error:
        return LINKS_IN_A_CIRCLE if getattr(error, "errno", None) == errno.ELOOP else ""
    return "" if kind == "a directory" else kind


def _kind(mode: int) -> str:
    """What something is that is no regular file; empty for one."""
    return "" if stat.S_ISREG(mode) else next((text for test, text in _KINDS if test(mode)), "something else")


def open_regular(path: Union[str, os.PathLike[str]]) -> BinaryIO:
    """Open a regular file for reading. Raises MissingFileError, FileAccessError."""
    return os.fdopen(_descriptor(path), "rb")


def map_file(path: Union[str, os.PathLike[str]]) -> Union[bytes, mmap.mmap]:
    """Map a regular file; an empty one, which cannot be mapped, is `b""`.

    Shortening a file while it is mapped kills the process that reads it (SIGBUS), as for every memory-mapped file.

    Raises:
      MissingFileError: there is no such file.
      FileAccessError: it cannot be read, or is no regular file.
    """
    descriptor = _descriptor(path)
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if os.fstat(descriptor).st_size else b""
    except OSError as error:
        raise FileAccessError(f"cannot be mapped: {error}", file=path) from None
    finally:
        os.close(descriptor)


def _descriptor(path: Union[str, os.PathLike[str]]) -> int:
    """Without waiting: the one who writes to a pipe may never come."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise MissingFileError("no such file", file=path) from None
    except (OSError, ValueError) as error:
        what = special(path)
        if what:
            raise not_a_file(f"cannot be opened: {what}", path) from None
        raise FileAccessError(f"cannot be opened: {error}", file=path) from None
    kind = _kind(os.fstat(descriptor).st_mode)
    if kind:
        os.close(descriptor)
        raise not_a_file(kind, path)
    return descriptor
