"""Limits on the memory of requests: of each beyond the bytes it sent, and of all together.

A few bytes of a request can claim a huge tensor. The size of tensors that were not sent is bounded
(INVALID_ARGUMENT) in advance. The bytes sent, and the objects parsed from them, count against the
room that all requests share: they wait for each other. A request that is larger than the room runs
when it is alone.

Three stages have a room each, entered in this order: the message, its inputs, its answer. A request
in a room waits only for requests in later stages, so requests never wait for each other in a cycle.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Optional

from reference_impl.format.limits import FILLED_BYTES
from savedmodel_standin.errors import ServingError, invalid

# bytes that one request may make the server hold beside those it sent; and its answer beside its
# inputs
FILLED = FILLED_BYTES
ROOM = 1 << 30  # bytes of each stage
KEPT = 1 << 30  # bytes of strings that one model may keep alive
# How many bytes the server holds for each byte it has. A message of two bytes is an object of
# forty, an empty list in JSON one of sixty; a tensor is copied for the session, its answer out of
# it, and written as text or as a message that is sent.
PARSED, COPIED, WRITTEN = 32, 4, 16


class Room:
    """Bytes that requests hold together; requests enter in order of arrival."""

    def __init__(self, size: int) -> None:
        self._size, self._held = size, 0
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    def enter(self, size: int, seconds: Optional[float]) -> None:
        """Wait until there is room for ``size`` bytes, or the room is empty.

        Raises :class:`ServingError` when the time is over.
        """
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                if not self._changed.wait_for(
                    lambda: self._waiting[0] is ticket and self._fits(size), seconds
                ):
                    raise ServingError(
                        "RESOURCE_EXHAUSTED", "stand-in: the memory for requests is held by others"
                    )
                self._held += size
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return not self._held or self._held + size <= self._size

    def leave(self, size: int) -> None:
        with self._changed:
            self._held -= size
            self._changed.notify_all()


_MESSAGES, _INPUTS, _ANSWERS = Room(ROOM), Room(ROOM), Room(ROOM)


class Share:
    """The part of the rooms that a request of ``sent`` bytes holds.

    It waits for ``timeout_ms`` in all; 0 for no limit.
    """

    def __init__(self, sent: int, timeout_ms: int = 0) -> None:
        self._end = time.monotonic() + timeout_ms / 1000 if timeout_ms > 0 else None
        self._left = contextlib.ExitStack()
        self._inputs = sent

    def __enter__(self) -> Share:
        self._enter(_MESSAGES, self._inputs * PARSED)
        return self

    def __exit__(self, *_: object) -> None:
        self._left.close()

    def _enter(self, room: Room, size: int) -> None:
        room.enter(size, None if self._end is None else max(0.0, self._end - time.monotonic()))
        self._left.callback(room.leave, size)

    def take_inputs(self, size: int, filled: int, what: str) -> None:
        """Take memory for the inputs, before they are made.

        ``filled``: how many of the ``size`` bytes were not sent; ``what``: the name of the inputs
        in the error. Raises :class:`ServingError`: they are too large for what was sent.
        """
        if filled > FILLED:
            raise invalid(
                f"stand-in: {what} would take {_shown(filled)} bytes more than the request has; at"
                f" most {FILLED} are given"
            )
        self._inputs = max(self._inputs, size)
        self._enter(_INPUTS, size * COPIED)

    def take_answer(self, size: int) -> None:
        """Take memory for the results of a run, before they are copied.

        Raises :class:`ServingError`: too large for the request sent.
        """
        if size > self._inputs + FILLED:
            raise invalid(
                f"stand-in: the answer would take {size} bytes; at most {FILLED} more than the"
                f" inputs ({self._inputs}) are given"
            )
        self._enter(_ANSWERS, size * WRITTEN)


def _shown(size: int) -> str:
    """Return a number of bytes as text.

    Python refuses to print the product of 250 large dimensions.
    """
    return str(size) if size < 1 << 63 else "2^63 or more"


_current: contextvars.ContextVar[Share] = contextvars.ContextVar("share")


@contextlib.contextmanager
def request(sent: int, timeout_ms: int = 0) -> Iterator[Share]:
    """Hold the share of this thread's request. Raises :class:`ServingError`: it waited too long."""
    with Share(sent, timeout_ms) as share:
        token = _current.set(share)
        try:
            yield share
        finally:
            _current.reset(token)


def current() -> Share:
    """Return the share of this thread's request."""
    return _current.get()
