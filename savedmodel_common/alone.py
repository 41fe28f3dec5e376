"""A lock between all processes on this machine that use the same cache."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(lock: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Lock a file in an existing folder; other processes that lock the same file wait.

    ``waiting`` is called before this process has to wait. The system releases the lock of a process
    that dies. The file is never removed, or two processes could lock different files of the same
    name. Raises OSError when it cannot be created or locked.
    """
    with lock.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
