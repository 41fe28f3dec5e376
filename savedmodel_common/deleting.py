"""Folders that are deleted while the program goes on: many disks take milliseconds to delete a
file.
"""

from __future__ import annotations

import itertools
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

WAITING = 32  # folders; one more waits for the oldest, so that their files do not fill the disk


class Deleter:
    """Delete folders in a thread of its own, which the first of them starts.

    They wait in ``folder``, which lies on the same file system and is made with the first of them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._threads: ThreadPoolExecutor | None = None
        self._waiting: list[Future[None]] = []
        self._numbers = itertools.count()

    def delete(self, folder: Path) -> None:
        """Move a folder away at once and delete it later.

        A missing folder is ignored, and so is what cannot be deleted.
        """
        gone = self._folder / str(next(self._numbers))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            folder.rename(gone)
        except FileNotFoundError:
            return
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="deleter")
        self._waiting = [waiting for waiting in self._waiting if not waiting.done()]
        if len(self._waiting) >= WAITING:
            self._waiting.pop(0).result()
        self._waiting.append(self._threads.submit(shutil.rmtree, gone, ignore_errors=True))

    def close(self) -> None:
        """End the thread. Folders that still wait stay in the folder that was given."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
