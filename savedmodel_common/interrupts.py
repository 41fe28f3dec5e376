"""SIGINT and SIGTERM: each ends a command at once, with one exit code and without a verdict.

The first signal raises KeyboardInterrupt wherever the main thread is. Further signals are ignored,
so that workers, servers and files are cleaned up undisturbed, until the third: then the process
ends without cleaning up.

An exception raised in a signal handler can be lost: in a destructor, a callback, a library that
catches everything. Code that is about to start the next piece of work or to give a verdict
therefore calls :func:`check`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from savedmodel_common.exit_codes import ExitCode

PATIENCE = 3  # signals
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _State:
    received = 0
    deferred = False


def signal_name(number: int) -> str:
    """Return the name of a signal, as of one that ended a process: "SIGKILL", or "signal 40" where
    there is no name.
    """
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def check() -> None:
    """Raise KeyboardInterrupt if this process was asked to end, even if that was reported
    before.
    """
    if _State.received:
        raise KeyboardInterrupt


def received() -> bool:
    """Return whether this process was asked to end."""
    return _State.received > 0


def note() -> None:
    """Treat a KeyboardInterrupt from elsewhere (Ctrl-C in a prompt, a caller's own handler) as a
    signal.
    """
    _State.received = max(_State.received, 1)


@contextlib.contextmanager
def handled() -> Iterator[None]:
    """Turn both signals into KeyboardInterrupt; a signal that the parent process chose to ignore
    stays ignored.

    Outside the main thread, where Python allows no handler, signals act as before.
    """
    _State.received = 0
    before = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) or signal.SIG_DFL for number in _SIGNALS}
        before = {
            number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN
        }
    for number in before:
        signal.signal(number, _on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _State.received = 0


def _on_signal(_number: int, _frame: FrameType | None) -> None:
    _State.received += 1
    if _State.received >= PATIENCE:
        os._exit(ExitCode.INTERRUPTED)
    if _State.received == 1 and not _State.deferred:
        raise KeyboardInterrupt


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Block both signals while something is made that must not stay behind half made: a process, a
    container.

    Processes that are started here and share our terminal inherit that, until they set up their own
    handling. A signal that arrives in the meantime raises nothing; a call of :func:`check` after
    the block raises instead.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    _State.deferred = True
    try:
        yield
    finally:
        try:
            signal.pthread_sigmask(
                signal.SIG_SETMASK, before
            )  # raises here under a handler that is not ours
        finally:
            _State.deferred = False


def interruptible() -> None:
    """In a process started this way, let a signal raise KeyboardInterrupt; one that has already
    arrived raises at once.
    """
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, _on_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def left_to_parent() -> None:
    """In a process started this way and ended by its parent, ignore signals from the terminal and
    obey SIGTERM.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
