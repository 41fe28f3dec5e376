"""The lock of an output folder: one command at a time writes to it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_FILE = ".lock"  # of an output folder
PLAN_FILE = "plan.json"  # of the output folder of a run: the folder is ours
_held: set[Path] = set()  # output folders of this process


class FolderInUse(BlockingIOError):
    """Another process writes to the output folder."""


@contextmanager
def sole_writer(folder: Path, *, beside_others: bool = False) -> Iterator[None]:
    """Hold an output folder, made if need be, so that no second command writes to it.

    May be nested in one process.

    Raises FolderInUse at once if another process holds the folder, so that its files are neither
    removed nor mixed with others. A folder with foreign files gets no lock file, since every
    command refuses to write there; with ``beside_others`` it gets one, for commands that write
    beside such files.

    The lock is this process's own: one of `flock` would outlive a killed process in a child that
    was just forked. It is lost when this process opens and closes the lock file elsewhere, so
    nothing else may open it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.resolve()
    present = {item.name for item in path.iterdir()}
    if path in _held or (not beside_others and present and not present & {LOCK_FILE, PLAN_FILE}):
        yield
        return
    with (path / LOCK_FILE).open("w") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # systems differ
            raise FolderInUse(
                f"another run is writing to {folder}. Wait until it ends, or choose another folder."
            ) from None
        _held.add(path)
        try:
            yield
        finally:
            _held.discard(path)
