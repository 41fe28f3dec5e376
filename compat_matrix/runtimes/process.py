"""One worker process: its channel, its log files, its end.

The process leads its own group, so that everything it started dies with it. Nothing here can block
forever: reading and writing share one deadline, and the wait after the end has another.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from compat_matrix.runtimes.children import TEMPORARY, Own, Start
from savedmodel_common import interrupts

MAX_REPLY = 64 << 20  # bytes; a longer line is not a reply
SLICE = (
    0.25  # seconds between checks for the death of a process whose children keep the channel open
)
DUMP_GRACE = 0.2  # seconds a worker has to write its stack before it is killed
EXIT_GRACE = 5.0  # seconds between the end of the channel and the end of the process
TAIL_BYTES, TAIL_LINES = 64 << 10, 200
LOG_LIMIT = 64 << 20  # bytes; beyond, a log is emptied between two requests


class Crashed(Exception):
    """Raised when the process ended or wrote something other than a reply.

    ``error_class``: ``SIGABRT``, ``exit 3``, ``garbage``.
    """

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class


class TimedOut(Exception):
    """Raised when no reply came within the limit; the process group was killed."""


class Process:
    """A started worker.

    ``request`` is the only conversation; after :class:`Crashed` or :class:`TimedOut` it is dead.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        logs: Path,
        start: Start = Own,
    ) -> None:
        """Start ``command`` in ``folder``; output goes to ``logs``.stdout and ``logs``.stderr.

        Raises OSError.

        Temporary files go to ``folder`` as well, unless ``environment`` says where: nobody else
        deletes the Python that AutoGraph writes.
        """
        logs.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        self.stdout, self.stderr = (
            logs.with_name(logs.name + ".stdout"),
            logs.with_name(logs.name + ".stderr"),
        )
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        self._buffer = b""
        self._asked = 0
        try:
            with self.stdout.open("ab") as out, self.stderr.open("ab") as err:
                own = {TEMPORARY: str(folder.absolute()), **environment}
                self._child = start(
                    command, own, folder, (out.fileno(), err.fileno(), theirs_in, theirs_out)
                )
        except BaseException:
            os.close(self._write)
            os.close(self._read)
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self.alive = True
        self._status: int | None = None
        self._first_id = (
            self.pid << 20
        )  # so that a reply to another worker's request never matches ours
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)

    @property
    def pid(self) -> int:
        return self._child.pid

    def request(self, message: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Send one request and return its reply. Raises :class:`Crashed` or :class:`TimedOut`."""
        self._empty_large_logs()
        self._asked += 1
        deadline = time.monotonic() + timeout
        line = (
            json.dumps({**message, "id": self._first_id + self._asked}, allow_nan=False).encode()
            + b"\n"
        )
        try:
            self._send(memoryview(line), deadline)
            return self._reply(self._receive(deadline))
        except TimeoutError:
            how = ": it is stopped by a signal" if self._child.stopped() else ""
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGUSR1)  # the worker then writes its stack to its log
                time.sleep(DUMP_GRACE)
            self.kill()
            raise TimedOut(f"no reply to {message.get('op')!r} within {timeout:g} s{how}") from None
        except (BrokenPipeError, EOFError):
            error_class, how = self._end()
            raise Crashed(
                error_class, f"the worker {how} while it was asked to {message.get('op')!r}"
            ) from None
        except (
            BaseException
        ):  # interrupted: its reply would be taken for the reply to the next request
            self.kill()
            raise

    def check(self) -> None:
        """Raise :class:`Crashed` when an idle process has ended, is stopped or has written
        something.

        The process then counts as dead: late or unrequested output must not become part of the next
        reply.
        """
        if not self.alive:
            return
        poller = select.poll()
        poller.register(self._read, select.POLLIN)
        if poller.poll(0):
            self._buffer += os.read(self._read, 1 << 16)
            if self._buffer:
                self._garbage(self._buffer)
        elif self._child.stopped():
            self.kill()
            raise Crashed(
                "stopped", "the worker was stopped by a signal while it was asked nothing"
            )
        elif not self._exited():
            return
        error_class, how = self._end()
        raise Crashed(error_class, f"the worker {how} while it was asked nothing")

    def _send(self, data: memoryview, deadline: float) -> None:
        while data:
            self._wait(self._write, select.POLLOUT, deadline)
            with suppress(BlockingIOError):
                data = data[os.write(self._write, data) :]

    def _receive(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            self._wait(self._read, select.POLLIN, deadline)
            try:
                chunk = os.read(self._read, 1 << 20)
            except BlockingIOError:
                continue
            if not chunk:
                raise EOFError
            self._buffer += chunk
            if len(self._buffer) > MAX_REPLY:
                self._garbage(self._buffer)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _wait(self, descriptor: int, event: int, deadline: float) -> None:
        """Wait until ``descriptor`` is ready.

        Raises TimeoutError, or EOFError when the process has ended without further output.
        """
        poller = select.poll()
        poller.register(descriptor, event)
        while True:
            interrupts.check()  # a waiting thread would not notice otherwise
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            exited = self._exited()
            if poller.poll(0 if exited else min(left, SLICE) * 1000):
                return
            if exited:
                raise EOFError

    def _reply(self, line: bytes) -> dict[str, Any]:
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            self._garbage(line)
        ours = isinstance(reply, dict) and reply.get("id") == self._first_id + self._asked
        if not ours or not isinstance(reply.get("status"), str):
            self._garbage(line)
        if self._buffer:
            self._garbage(self._buffer)  # nothing may follow a reply
        checked: dict[str, Any] = reply
        return checked

    def _garbage(self, data: bytes) -> NoReturn:
        self.kill()
        raise Crashed(
            "garbage",
            f"the worker wrote something that is not a reply to request {self._asked}:"
            f" {data[:200]!r}",
        )

    # The end
    # ----------------------------------------------------------------------------------------------

    def _exited(self) -> bool:
        return self._child.exited()

    def _end(self) -> tuple[str, str]:
        """Wait for the exit status of a process that closed its channel; ``(error class, what
        happened)``.
        """
        deadline = time.monotonic() + EXIT_GRACE
        while not self._exited() and time.monotonic() < deadline:
            time.sleep(0.005)
        hung = not self._exited()
        self.kill()
        if hung:
            return "closed", "closed its channel and went on"
        code = self._status
        if code is None:
            return "lost", "ended, and its exit status is not known"
        if code < 0:
            name = interrupts.signal_name(-code)
            return name, f"was killed by {name}"
        return f"exit {code}", f"ended with status {code}"

    def kill(self) -> None:
        """Kill the process group and reap the leader, within a limited time."""
        if not self.alive:
            return
        self.alive = False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._status = self._child.reap(EXIT_GRACE)
        os.close(self._read)
        os.close(self._write)

    def close(self, timeout: float = EXIT_GRACE) -> None:
        """Ask the process to end, then kill it; kill it at once when this program is
        interrupted.
        """
        if not self.alive:
            return
        if not interrupts.received():
            with suppress(Crashed, TimedOut):
                self.request({"op": "bye"}, timeout)
        # at once: unloading TensorFlow takes most of a second and serves no purpose now
        self.kill()

    # Logs
    # ----------------------------------------------------------------------------------------------

    def _empty_large_logs(self) -> None:
        # Both are open for appending in the worker, so it continues at the new end.
        for log in (self.stdout, self.stderr):
            with suppress(FileNotFoundError):
                if log.stat().st_size > LOG_LIMIT:
                    os.truncate(log, 0)


def log_size(log: Path) -> int:
    """Return the current size of a log; 0 when there is none."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def log_tail(log: Path, start: int = 0) -> str:
    """Return the last lines of a log, starting no earlier than offset ``start``."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(start if start <= size else 0, size - TAIL_BYTES))
            text = stream.read(TAIL_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-TAIL_LINES:])
