"""One process at a time, of all on this machine that use the same cache."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(lock: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold a file, made in a folder that exists, which everybody else who names it waits for.

    ``waiting`` is called before this one has to wait. The system frees the file of a process that dies; it is never removed,
    or two could hold files of one name. Raises OSError when it cannot be made or held.
    """
    with lock.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
