"""Copies of large values, made by threads while a load goes on.

Copying needs no lock of the interpreter, the checksum does: two threads that do both in turns take as long as the slower of the
two. The benchmark "load: 1 GiB of weights" (docs/benchmarks.md) takes a third longer without them.

RFC: RP-08
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Optional

from reference_impl.format.bundle.reader import BundleReader

_THREADS = 2
_AHEAD = 1 << 28  # bytes that may wait to be copied: a damaged checkpoint is noticed before all of its memory is there


class Copies:
    """Copies that are being made. Their tensors may be handed on to what does not read them before `finish`."""

    def __init__(self) -> None:
        self._pool: Optional[ThreadPoolExecutor] = None
        self._pending: deque[tuple[Future[None], int]] = deque()
        self._bytes = 0

    def add(self, reader: BundleReader, key: str, target: Any, tensor: Any) -> None:
        """Copy a plain tensor of a bundle into memory that `tensor` owns. Raises what an earlier copy raises."""
        self._pool = self._pool or ThreadPoolExecutor(_THREADS, "reference_impl_copies")
        # The tensor goes along so that its memory stays.
        self._pending.append((self._pool.submit(_copy, reader, key, target, tensor), len(target)))
        self._bytes += len(target)
        self._finish(_AHEAD)

    def finish(self) -> None:
        """Wait until everything is copied. Raises what `BundleReader.copy` raises, of the first that failed."""
        self._finish(0)

    def _finish(self, left: int) -> None:
        while self._bytes > left:
            copy, size = self._pending.popleft()
            self._bytes -= size
            copy.result()

    def close(self) -> None:
        """Drop what has not begun, and wait for the rest."""
        if self._pool is not None:
            for copy, _ in self._pending:
                copy.cancel()
            self._pool.shutdown()
            self._pool = None


def _copy(reader: BundleReader, key: str, target: Any, _tensor: Any) -> None:
    reader.copy(key, target)
