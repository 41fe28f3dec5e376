"""An export that is put in place while another one is read there: its files must not be taken for those of the first.

RFC: API-04
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Optional

from reference_impl import errors
from reference_impl.format.container import files


@contextmanager
def not_replaced(path: files.AnyPath) -> Iterator[None]:
    """While a SavedModel is read, file after file.

    Args:
      path: its directory, or a file in it.

    Raises:
      FileAccessError: the directory is another one in the end. What was read may be of both, and so may an error be.
    """
    directory = Path(path) if Path(path).is_dir() else Path(path).parent
    handle = _open(directory)
    try:
        try:
            yield
        except errors.SavedModelError as error:
            if _is_at(handle, directory):
                raise
            raise _replaced(directory) from error
        if not _is_at(handle, directory):
            raise _replaced(directory)
    finally:
        if handle is not None:
            os.close(handle)


def _open(directory: Path) -> Optional[int]:
    # Open, so that its number is not given to the next export but one.
    with suppress(OSError, ValueError):  # a system that opens no directories, or none there
        return os.open(directory, os.O_RDONLY)
    return None


def _is_at(handle: Optional[int], directory: Path) -> bool:
    if handle is None:
        return True
    try:
        return os.path.samestat(os.fstat(handle), directory.stat())
    except OSError:
        return False


def _replaced(directory: Path) -> errors.FileAccessError:
    return errors.FileAccessError("was replaced by another export while it was read; read it again", file=directory)
