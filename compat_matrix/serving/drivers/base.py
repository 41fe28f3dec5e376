"""What a driver of servers is: it says what the server is, starts it on a folder of models, and takes its evidence.

No client, no engine and no model is known here. A driver starts a *process*; whether it answers, and whether a model in it is
available, is asked by the fleet, with a clock of its own for either.
"""

from __future__ import annotations

import abc
import importlib.util
import re
import signal as signals
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.common.extras import install

GRPC_PORT, REST_PORT = 8500, 8501  # of the official image

SERVING, STANDIN, REMOTE = "tensorflow-serving", "standin", "remote"  # kinds of servers

LOG, EXIT = "log.txt", "exit.json"  # the files of the evidence


class NotHere(Exception):
    """There is no such server on this machine. ``command`` is what would provide it, exact."""

    def __init__(self, reason: str, command: str) -> None:
        super().__init__(f"{reason}; to provide it: {command}")
        self.reason, self.command = reason, command


PACKAGES_COMMAND = install("serving")


def need_grpc() -> None:
    """Raises NotHere where no server could be asked anything."""
    if importlib.util.find_spec("grpc") is None:
        raise NotHere("grpcio is not installed", PACKAGES_COMMAND)


class EngineTrouble(Exception):
    """The machine or its container engine failed, not a server and not a model. ``passing``: worth another try."""

    def __init__(self, message: str, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True)
class ServerIdentity:
    """What answers. ``version``: the TensorFlow inside (PEP 440), None when it does not say; ``digest``: of the image."""

    kind: str
    version: str | None
    image: str | None = None
    digest: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Endpoint:
    """Where a server answers, as seen by the harness. ``rest_port`` None: it has no REST API."""

    host: str
    grpc_port: int
    rest_port: int | None

    @property
    def grpc(self) -> str:
        return f"{self._host}:{self.grpc_port}"

    @property
    def rest(self) -> str | None:
        return None if self.rest_port is None else f"{self._host}:{self.rest_port}"

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


@dataclass(frozen=True)
class ExitState:
    """How a server ended. ``signal``: the number of what killed it, also where a shell in between made it 128 + n."""

    code: int
    oom_killed: bool = False
    signal: int | None = None
    started: str = ""
    finished: str = ""
    error: str = ""

    @classmethod
    def of(cls, code: int, **more: Any) -> ExitState:
        """From a status as a shell tells it (128 + n for a signal) or as Python does (-n)."""
        number = -code if code < 0 else code - 128
        killed = number if number in set(signals.Signals) else None
        return cls(code, signal=killed, **more)

    @property
    def from_outside(self) -> bool:
        """Whether somebody else ended it: such a signal comes from no model, and the memory limit is told apart."""
        return self.signal in (signals.SIGKILL, signals.SIGTERM, signals.SIGINT, signals.SIGHUP) and not self.oom_killed

    def __str__(self) -> str:
        if self.oom_killed:
            return "ran out of its memory limit (COMPAT_SERVER_MEMORY=8g raises it)"
        if self.signal is not None:
            return f"was killed by {signals.Signals(self.signal).name}"
        return f"ended with status {self.code}{f' ({self.error})' if self.error else ''}"


class Server(abc.ABC):
    """A started server. It is over when ``exit_state`` says so; ``stop`` is called once in any case."""

    name: str

    @abc.abstractmethod
    def endpoint(self) -> Endpoint | None:
        """Where it will answer; None while that is not known. Raises EngineTrouble."""

    @abc.abstractmethod
    def exit_state(self) -> ExitState | None:
        """None while it runs. Raises EngineTrouble."""

    @abc.abstractmethod
    def log_size(self) -> int:
        """Bytes of the log so far: a mark for ``logs``."""

    @abc.abstractmethod
    def logs(self, start: int = 0) -> str:
        """What it wrote on stdout and stderr, from a mark on."""

    @abc.abstractmethod
    def kill(self) -> None:
        """End it at once; its evidence stays to be taken."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End it if it runs, copy its log and exit state into the evidence, remove it. Never raises for a server that is gone."""

    def add(self, name: str) -> None:  # noqa: B027 - most servers see the folder itself
        """Make ``name`` of the folder visible, where the server sees a copy of it."""

    def doubt(self, answered: bool) -> str | None:
        """A reason of the machine why this server does not answer, or not only it (another took its port); None: no doubt."""
        return None


class Driver(abc.ABC):
    """Starts servers of one identity. ``manages`` False: they are somebody else's, with models of their own."""

    name: str
    manages = True

    def __init__(self) -> None:
        self.retried: list[str] = []  # what went wrong with the machine and was tried again

    @abc.abstractmethod
    def identify(self) -> ServerIdentity:
        """What the servers are. Raises NotHere."""

    @abc.abstractmethod
    def seen(self, folder: Path) -> str:
        """The path under which a server sees the folder it is started on."""

    @abc.abstractmethod
    def start(self, folder: Path, flags: Sequence[str], evidence: Path) -> Server:
        """Start a server. Raises NotHere or EngineTrouble; what is passing was tried again before."""

    def close(self) -> None:  # noqa: B027 - nothing to do for most
        """Remove whatever is left of the servers that were started, also of one whose start was interrupted."""


_VERSION = re.compile(r"^TensorFlow (ModelServer|Library): *(\S+)", re.MULTILINE)


def read_version(output: str) -> tuple[str | None, dict[str, str]]:
    """``(version of TensorFlow or None, {"ModelServer": ..., "Library": ...})`` from what ``--version`` prints."""
    from packaging.version import InvalidVersion, Version

    found: dict[str, str] = dict(_VERSION.findall(output))
    for name in ("Library", "ModelServer"):
        try:
            return str(Version(found[name])), found
        except (KeyError, InvalidVersion):
            continue
    return None, found
