"""Staging directories, in which exports are written, and removal of those that killed processes
left behind.

A staging directory is locked while its process lives, so an unlocked one is known to be abandoned
on every machine that shares the file system. Where the system has no such locks, nothing is cleaned
up. Errors come from the system (OSError).

RFC: API-04
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Optional

from reference_impl.format.container.files import is_at

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

STAGED, REPLACED = ".staged", ".replaced"
_SYNCED = 16  # files synced at a time
_NAME_LENGTH = 100  # file systems allow 255 bytes; the rest is for the suffix


def make(directory: Path, parent: Path) -> tuple[Path, Optional[int]]:
    """Make a locked directory below `parent` for an export to `directory`; return its path and the
    lock to close.
    """
    while True:
        path = parent / f"{_prefix(directory)}{os.getpid()}-{secrets.token_hex(4)}{STAGED}"
        path.mkdir()
        lock = _lock(path)
        # Another process may have removed it as abandoned before it was locked.
        if lock is None or is_at(lock, path):
            return path, lock
        os.close(lock)


def sweep(directory: Path, parent: Path) -> None:
    """Remove the staging directories that killed processes left below `parent` for exports to
    `directory`.

    If a process was killed between the two renames of a system that cannot exchange directories,
    the old export is put back.
    """
    pattern = (
        re.escape(_prefix(directory))
        + rf"\d+-[0-9a-f]{{8}}({re.escape(STAGED)}|{re.escape(REPLACED)})"
    )
    with suppress(OSError):
        for entry in list(os.scandir(parent)):
            if not re.fullmatch(pattern, entry.name) or not entry.is_dir(follow_symlinks=False):
                continue
            path = Path(entry.path)
            lock = _lock(path)
            if lock is None:
                continue
            try:
                if path.suffix == REPLACED and not directory.exists():
                    path.rename(directory)
                else:
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def link_others(source: Path, target: Path, members: Collection[str]) -> None:
    """Hard-link the contents of `source` into `target`, except `members` and anything that `target`
    already has.
    """
    for entry in list(os.scandir(source)):
        place = target / entry.name
        if entry.name in members or os.path.lexists(place):
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.copytree(entry.path, place, symlinks=True, copy_function=_link)
        else:
            _link(entry.path, str(place))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target, follow_symlinks=False)


def sync(directory: Path) -> None:
    """Have the system write everything below a directory to the disk.

    Files are synced in parallel, so that a journal is written once or twice for all of them, not
    once for each.
    """
    from concurrent.futures import ThreadPoolExecutor

    paths: list[str] = []
    folders: list[str] = []
    for folder, _, names in os.walk(directory):
        folders.append(folder)
        paths += [os.path.join(folder, name) for name in names]  # noqa: PTH118
    if os.name == "posix":
        paths += folders
    with ThreadPoolExecutor(min(_SYNCED, len(paths) or 1)) as pool:
        list(pool.map(_sync_one, paths))


def _sync_one(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put_in_place(stage: Path, directory: Path) -> None:
    """Rename `stage` to `directory`, on the same file system, so that a reader finds either export,
    whole.

    The previous directory is in `stage` afterwards, or deleted. Where the system cannot exchange
    two directories, it is moved aside for a moment, under the name of `stage` with the suffix
    `REPLACED`.
    """
    if not directory.exists():
        stage.rename(directory)
    elif not _exchange(stage, directory):
        old = stage.with_suffix(REPLACED)
        directory.rename(old)
        stage.rename(directory)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two directories in one step; return False if the system cannot."""
    if os.name != "posix":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE or RENAME_SWAP
    if sys.platform == "linux" and hasattr(libc, "renameat2"):
        status = libc.renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange)
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        status = libc.renamex_np(os.fsencode(first), os.fsencode(second), exchange)
    else:
        return False
    if status == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(second))


@contextmanager
def working_directory_kept(directory: Path) -> Iterator[None]:
    """Keep the working directory of this process in `directory` while `directory` is replaced."""
    try:
        here: Optional[str] = os.getcwd()  # noqa: PTH109
    except OSError:
        here = None
    yield
    with suppress(OSError):
        if here is not None and Path(here).is_relative_to(directory):
            os.chdir(here)


def _prefix(directory: Path) -> str:
    return f".{directory.name[:_NAME_LENGTH]}."


def _lock(path: Path) -> Optional[int]:
    """Lock a directory; return None if another process holds the lock or the system has no
    locks.
    """
    if fcntl is None:
        return None
    handle = None
    try:
        handle = os.open(path, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if handle is not None:
            os.close(handle)
        return None
    return handle
