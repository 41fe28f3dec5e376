"""Copy large values in threads while a load continues.

Copying releases the GIL, the checksum does not: if two threads alternate between both, the time is that of the slower step. The
benchmark "load: 1 GiB of weights" (docs/benchmarks.md) takes a third longer without them.

RFC: RP-08
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Optional

from reference_impl.format.bundle.reader import BundleReader

_THREADS = 2
_AHEAD = 1 << 28  # bytes that may wait to be copied, so that a damaged checkpoint is noticed before all memory is allocated


class Copies:
    """Copies in progress. Their tensors may be passed on to code that does not read them before `finish`."""

    def __init__(self) -> None:
        self._pool: Optional[ThreadPoolExecutor] = None
        self._pending: deque[tuple[Future[None], int]] = deque()
        self._bytes = 0

    def add(self, reader: BundleReader, key: str, target: Any, tensor: Any) -> None:
        """Copy a plain tensor of a bundle into memory that `tensor` owns. Raises the error of an earlier copy."""
        self._pool = self._pool or ThreadPoolExecutor(_THREADS, "reference_impl_copies")
        # The tensor is passed along to keep its memory alive.
        self._pending.append((self._pool.submit(_copy, reader, key, target, tensor), len(target)))
        self._bytes += len(target)
        self._finish(_AHEAD)

    def finish(self) -> None:
        """Wait until everything is copied. Raises the error of the first copy that failed; see `BundleReader.copy`."""
        self._finish(0)

    def _finish(self, left: int) -> None:
        while self._bytes > left:
            copy, size = self._pending.popleft()
            self._bytes -= size
            copy.result()

    def close(self) -> None:
        """Drop the copies that have not started, and wait for the others."""
        if self._pool is not None:
            for copy, _ in self._pending:
                copy.cancel()
            self._pool.shutdown()
            self._pool = None


def _copy(reader: BundleReader, key: str, target: Any, _tensor: Any) -> None:
    reader.copy(key, target)
