"""Read-only memory maps of files that nobody vouches for."""

from __future__ import annotations

import mmap
import os
import stat
from typing import Union

from reference_impl.format.errors import FileAccessError, MissingFileError


def map_file(path: Union[str, os.PathLike[str]]) -> Union[bytes, mmap.mmap]:
    """Maps a regular file; an empty one, which cannot be mapped, is `b""`.

    Shortening a file while it is mapped kills the process that reads it (SIGBUS), as for every memory-mapped file.

    Raises:
      MissingFileError: there is no such file.
      FileAccessError: it cannot be read, or is no regular file (a pipe would block, a device has no end).
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise MissingFileError("no such file", file=path) from None
    except (OSError, ValueError) as error:
        raise FileAccessError(f"cannot be opened: {error}", file=path) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileAccessError("not a regular file", file=path)
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if status.st_size else b""
    except FileAccessError:
        raise
    except OSError as error:
        raise FileAccessError(f"cannot be mapped: {error}", file=path) from None
    finally:
        os.close(descriptor)
