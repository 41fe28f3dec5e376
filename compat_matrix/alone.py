"""One process at a time, of all on this machine that use the same cache or output folder."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from compat_matrix.plan import PLAN_FILE

LOCK_FILE = ".lock"  # of an output folder
_held: set[Path] = set()  # output folders of this process


class FolderInUse(BlockingIOError):
    """Another process writes to the output folder."""


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


@contextmanager
def sole_writer(folder: Path, *, beside_others: bool = False) -> Iterator[None]:
    """Hold an output folder, made if need be, so that no second command writes to it. May be nested in one process.

    Raises FolderInUse at once when another process holds it: what that one is writing must neither be emptied nor mixed. A folder
    that holds files of somebody else gets no lock file: nothing is written there, every command refuses it. With
    ``beside_others`` it gets one: for commands that write beside such files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.resolve()
    present = {item.name for item in path.iterdir()}
    if path in _held or (not beside_others and present and not present & {LOCK_FILE, PLAN_FILE}):
        yield
        return
    with (path / LOCK_FILE).open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(f"another run is writing to {folder}. Wait until it ends, or choose another folder.") from None
        _held.add(path)
        try:
            yield
        finally:
            _held.discard(path)
