"""The plug-in's process during the check, and the last messages, as evidence for its author."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from compat_matrix.runtimes.process import (
    EXIT_GRACE,
    Crashed,
    Process,
    TimedOut,
    log_size,
    log_tail,
)
from compat_matrix.runtimes.programs import Program
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.runtimes.worker import PROTOCOL, START_LIMIT, environment, start
from reference_impl.errors import shortened
from savedmodel_plugin_kit import grammar

SHOWN = 400  # characters of a message, in a report


class Mistake(Exception):
    """A named mistake of the plug-in.

    ``rule`` is the broken rule, if it is not the check's first.
    """

    def __init__(self, message: str, rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule


class _Process(Process):
    """The harness's own end of the channel.

    It says what is wrong with a line instead of only showing the line.
    """

    fault: tuple[str, str] | None = None
    waiting = False

    def _exited(self) -> bool:
        """Polled several times a second while a reply is due, so that a reply sent to stdout does
        not cost the time limit.
        """
        if self.waiting and self._misplaced():
            raise Mistake(
                "the reply was printed to stdout; it belongs on the second descriptor of"
                " SAVEDMODEL_COMPAT_FD",
                "P-01",
            )
        return super()._exited()

    def _misplaced(self) -> bool:
        with suppress(OSError):
            lines = self.stdout.read_bytes()[-4096:].splitlines()
            return any(line.strip().startswith(b"{") and b'"status"' in line for line in lines)
        return False

    def _reply(self, line: bytes) -> dict[str, Any]:
        self.fault = line_fault(line, self._first_id + self._asked, self._buffer)
        return super()._reply(line)

    def _garbage(self, data: bytes) -> NoReturn:
        self.fault = self.fault or ("P-02", f"this was written without being asked: {data[:80]!r}")
        super()._garbage(data)


def line_fault(line: bytes, wanted: int, behind: bytes) -> tuple[str, str] | None:
    """Return what is wrong with the line of a reply: ``(rule, sentence)``."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "P-01", f"the reply is not UTF-8: {line[:80]!r}"
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError) as error:
        return (
            "P-01",
            (
                f"a line on the channel is not JSON ({error}): {_short(text)}; text for people"
                " belongs on stderr"
            ),
        )
    if not isinstance(reply, dict):
        return "P-01", f"the reply is a JSON {type(reply).__name__}, not an object"
    if "id" not in reply:
        return "P-02", "the reply has no id: it must repeat that of the request"
    if reply["id"] != wanted or isinstance(reply["id"], bool) or not isinstance(reply["id"], int):
        how = (
            "as text: it is a number"
            if reply["id"] == str(wanted)
            else f"which is not that of the request, {wanted}"
        )
        return "P-02", f"the reply has the id {reply['id']!r}, {how}"
    if not isinstance(reply.get("status"), str):
        return (
            "P-03",
            (
                "the reply has no status"
                if "status" not in reply
                else f"status is {reply['status']!r}"
            ),
        )
    return ("P-02", f"something was written behind the reply: {behind[:80]!r}") if behind else None


def _short(text: str) -> str:
    return shortened(text, SHOWN)


class Session:
    """Starts the plug-in, restarts it after it died, and keeps the last messages sent and
    received.
    """

    def __init__(self, program: Program, runtime: Runtime, folder: Path, limit: float) -> None:
        self.program, self.runtime, self.folder, self.limit = program, runtime, folder, limit
        self.hello: dict[str, Any] = {}
        self.sent: list[Any] = []
        self.came: list[Any] = []
        self._process: _Process | None = None
        self._starts = 0

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(self.hello.get("capabilities", ()))

    @property
    def process(self) -> _Process:
        """Return the running process; start it when there is none. Raises :class:`Mistake`."""
        if self._process is None or not self._process.alive:
            self._starts += 1
            logs = self.folder / "logs" / str(self._starts)
            try:
                words = self.program.words(self.runtime)
                self._process = _Process(
                    words, environment(self.program), self.folder / "cwd", logs, start(self.program)
                )
            except OSError as error:
                raise Mistake(f"the command does not start: {error}") from error
            if self.hello:
                self.say("hello", START_LIMIT, protocol=PROTOCOL)
        return self._process

    def say(self, op: str, limit: float = 0, **fields: Any) -> dict[str, Any]:
        """Send a request and return the reply, whatever its status; its form is checked.

        Raises :class:`Mistake`.
        """
        process, message = self.process, {"op": op, **fields}
        self.sent, self.came = [*self.sent[-3:], _told(message)], self.came[-3:]
        begin, process.fault = log_size(process.stderr), None
        process.waiting = True
        try:
            reply = process.request(message, limit or self.limit)
        except Mistake:
            process.waiting = False
            process.kill()
            raise
        except TimedOut as error:
            self.came.append(None)
            raise Mistake(str(error)) from None
        except Crashed as error:
            self.came.append(None)
            if process.fault:
                raise Mistake(process.fault[1], process.fault[0]) from None
            raise Mistake(
                f"{error}; its last words: {_last_line(log_tail(process.stderr, begin))}"
            ) from None
        finally:
            process.waiting = False
        self.came.append(_told(reply))
        found = grammar.fault(op, reply) if op in grammar.MESSAGES else grammar.fault("bye", reply)
        if found:
            raise Mistake(found[1], found[0])
        return reply

    def ok(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send a request that must be answered with ok. Raises :class:`Mistake`."""
        reply = self.say(op, **fields)
        if reply["status"] != "ok":
            raise Mistake(
                f"{op} is answered with {reply['status']}: {reply['error_class']}:"
                f" {_short(reply['message'])}"
            )
        return reply

    def quiet(self) -> None:
        """Raise :class:`Mistake` when the process has died or written something since the last
        request.
        """
        process = self._process
        if process is None or not process.alive:
            return
        process.fault = None
        try:
            process.check()
        except Crashed as error:
            raise Mistake(*reversed(process.fault or ("P-02", str(error)))) from None

    def closed(self, grace: float) -> str:
        """Close the channel and return how the process ends, or "" when it does not end within
        ``grace`` seconds.
        """
        process = self.process
        os.close(process._write)
        os.close(process._read)
        process.alive = False
        return self._waited(process, grace)

    def signalled(self, number: int, grace: float) -> str:
        """Send a signal and return how the process ends, or "" when it does not end within
        ``grace`` seconds.
        """
        os.kill(self.process.pid, number)
        return self.left(grace)

    def left(self, grace: float) -> str:
        """Return how a process that was told to end does so, or "" when it does not end within
        ``grace`` seconds.
        """
        process = self.process
        process.alive = False
        try:
            return self._waited(process, grace)
        finally:
            os.close(process._write)
            os.close(process._read)

    def _waited(self, process: _Process, grace: float) -> str:
        deadline = time.monotonic() + grace
        while not process._exited() and time.monotonic() < deadline:
            time.sleep(0.01)
        ended = process._exited()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process._child.reap(EXIT_GRACE)
        return f"status {status}" if ended else ""

    def logs(self) -> int:
        """Return the number of bytes that all processes wrote to stdout and stderr."""
        return sum(path.stat().st_size for path in (self.folder / "logs").glob("*.std*"))

    def close(self) -> None:
        """End the process, first by asking."""
        if self._process is not None and self._process.alive:
            self._process.close()


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return _short(lines[-1]) if lines else "none"


def _told(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message for a report, with long texts shortened."""
    return {
        name: _short(value) if isinstance(value, str) else value
        for name, value in message.items()
        if name != "traceback"
    }
