"""A ``tensorflow_model_server`` of this machine: one process group per server, which ends with the
harness.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path

from compat_matrix.runtimes import places

from . import guard, harness
from .base import (
    EXIT,
    LOG,
    SERVING,
    STANDIN,
    Driver,
    Endpoint,
    EngineTrouble,
    ExitState,
    NotHere,
    Server,
    ServerIdentity,
    need_grpc,
    read_version,
)

PROGRAM = "tensorflow_model_server"
VERSION_LIMIT = 60.0  # seconds
GRACE = 5.0  # seconds between SIGKILL and the end
HOST = "127.0.0.1"

# What the server, or the system below it, says when a port that was free has an owner. The real
# server goes on without REST.
_PORT_TAKEN = re.compile(
    r"address already in use|Failed to start HTTP Server|No address added out of total",
    re.IGNORECASE,
)


class BinaryDriver(Driver):
    """Starts ``path``, or the ``tensorflow_model_server`` on PATH."""

    def __init__(self, path: str | None = None) -> None:
        super().__init__()
        self.name = "binary" if path is None else f"binary:{path}"
        self._wanted = path
        self._identity: ServerIdentity | None = None
        self._run = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)

    def identify(self) -> ServerIdentity:
        if self._identity is None:
            need_grpc()
            self._identity = self._ask()
        return self._identity

    def _ask(self) -> ServerIdentity:
        program = self._program()
        try:
            file = Path(program).stat()
            output = _told_version(program, (file.st_ino, file.st_size, file.st_mtime_ns))
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotHere(f"{program} --version: {error}", _HOW) from None
        version, lines = read_version(output)
        if not lines:
            raise NotHere(
                f"{program} is no TensorFlow Serving: --version says {output.strip()[:200]!r}", _HOW
            )
        kind = STANDIN if "standin" in "".join(lines.values()) else SERVING
        return ServerIdentity(kind, version, details={"program": program, **lines})

    def _program(self) -> str:
        found = shutil.which(self._wanted or PROGRAM)
        if found is None:
            where = (
                f"{self._wanted} is not a program"
                if self._wanted
                else f"there is no {PROGRAM} on PATH"
            )
            raise NotHere(where, _HOW)
        return str(Path(found).absolute())

    def seen(self, folder: Path) -> str:
        return str(folder)

    def start(self, folder: Path, flags: Sequence[str], evidence: Path) -> BinaryServer:
        grpc_port, rest_port = free_ports()
        command = [self._program(), f"--port={grpc_port}", f"--rest_api_port={rest_port}", *flags]
        record = records() / f"{self._run}-{next(self._numbers)}.json"
        try:
            return BinaryServer(command, Endpoint(HOST, grpc_port, rest_port), evidence, record)
        except OSError as error:
            raise EngineTrouble(f"{command[0]} cannot be started: {error}") from error


@functools.cache
def _told_version(program: str, file: tuple[int, ...]) -> str:
    """Return what ``--version`` prints: once for each ``file``, since a server loads all of
    TensorFlow to say it.
    """
    done = subprocess.run(
        [program, "--version"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=VERSION_LIMIT,
    )
    return done.stdout + done.stderr


_HOW = (
    "apt-get install tensorflow-model-server (of TensorFlow Serving's own apt repository), or name"
    " one: binary:PATH"
)


def records() -> Path:
    """Return the folder that has a file for each running server process."""
    return places.home() / "serving" / "processes"


def free_ports() -> tuple[int, int]:
    """Return two free ports; ``doubt`` finds a process that takes one before the server does."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in held:
            one.bind((HOST, 0))
        first, second = (one.getsockname()[1] for one in held)
    return first, second


class BinaryServer(Server):
    """A server process behind its guard."""

    def __init__(
        self, command: Sequence[str], endpoint: Endpoint, evidence: Path, record: Path
    ) -> None:
        """Start ``command``. Raises OSError."""
        evidence.mkdir(parents=True, exist_ok=True)
        record.parent.mkdir(parents=True, exist_ok=True)
        self._log, self._status, self._record = evidence / LOG, evidence / EXIT, record
        self._endpoint = endpoint
        theirs, self._hold = os.pipe()
        try:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-S",
                        "-E",
                        guard.__file__,
                        str(self._status.absolute()),
                        *command,
                    ],
                    stdin=theirs,
                    stdout=log,
                    stderr=log,
                    cwd=evidence,
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._hold)
            raise
        finally:
            os.close(theirs)
        self.name = f"process {self._process.pid}"
        self._stopped = False
        about = {
            "pid": self._process.pid,
            "started": harness.started(self._process.pid),
            "command": list(command),
        }
        record.write_text(json.dumps({**about, "harness": asdict(harness.me())}), encoding="utf-8")

    def endpoint(self) -> Endpoint | None:
        return self._endpoint

    def exit_state(self) -> ExitState | None:
        code = self._process.poll()
        if code is None:
            return None
        try:
            told = json.loads(self._status.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # the guard was killed together with the server
            return ExitState.of(code)
        return ExitState.of(told.pop("code"), **told)

    def log_size(self) -> int:
        return self._log.stat().st_size

    def logs(self, start: int = 0) -> str:
        with self._log.open("rb") as stream:
            stream.seek(start)
            return stream.read().decode("utf-8", "replace")

    def doubt(self, answered: bool) -> str | None:
        taken = _PORT_TAKEN.search(self.logs())
        if taken:
            return f"a port was taken by another process ({taken[0]})"
        if (
            answered
            and not {self._endpoint.grpc_port, self._endpoint.rest_port} <= self._listening()
        ):
            return "another process answers at the port"
        return None

    def _listening(self) -> set[int | None]:
        """Ports on which the processes of this server listen; those of the endpoint where the
        system does not tell.
        """
        import psutil

        found: set[int | None] = set()
        try:
            leader = psutil.Process(self._process.pid)
            for process in (leader, *leader.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    # Named `connections` before psutil 6.
                    ask = getattr(process, "net_connections", None) or process.connections
                    found |= {
                        one.laddr.port for one in ask("tcp") if one.status == psutil.CONN_LISTEN
                    }
        except psutil.NoSuchProcess:
            pass
        except psutil.AccessDenied:
            return {self._endpoint.grpc_port, self._endpoint.rest_port}
        return found

    def kill(self) -> None:
        import psutil

        below: dict[int, str | None] = {}
        with suppress(psutil.Error):
            children = psutil.Process(self._process.pid).children(recursive=True)
            below = {child.pid: harness.started(child.pid) for child in children}
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        deadline = time.monotonic() + GRACE
        with suppress(
            subprocess.TimeoutExpired
        ):  # in uninterruptible sleep: the system's business from here
            self._process.wait(GRACE)
        # The guard may be gone before the server below it, which has memory to give back.
        while time.monotonic() < deadline and any(
            began and harness.started(pid) == began for pid, began in below.items()
        ):
            time.sleep(0.01)

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        ended = self.exit_state()
        self.kill()  # the group: also what an ended server left behind
        os.close(self._hold)
        state = ended or self.exit_state() or ExitState(-signal.SIGKILL)
        told = {**asdict(state), "stopped_by_harness": ended is None}
        self._status.write_text(json.dumps(told, indent=1), encoding="utf-8")
        self._record.unlink(missing_ok=True)
