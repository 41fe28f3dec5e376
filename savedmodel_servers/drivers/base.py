"""The interface of a driver of servers: it identifies the server, starts it on a folder of models,
and collects its evidence.

This module knows no client, engine or model. A driver starts a *process*. The fleet checks whether
the process answers and
whether
a model is available, each with its own time limit.
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

from compat_matrix.runtimes.places import ServerTrouble
from savedmodel_common.extras import install
from savedmodel_common.interrupts import signal_name

GRPC_PORT, REST_PORT = 8500, 8501  # of the official image

SERVING, STANDIN, REMOTE = "tensorflow-serving", "standin", "remote"  # kinds of servers

LOG, EXIT = "log.txt", "exit.json"  # the files of the evidence


class NotHere(ServerTrouble):
    """Raised when there is no such server on this machine.

    ``command`` is the exact command that would provide it.
    """

    def __init__(self, reason: str, command: str) -> None:
        super().__init__(f"{reason}; to provide it: {command}")
        self.reason, self.command = reason, command


PACKAGES_COMMAND = install("serving")


def need_grpc() -> None:
    """Raise NotHere where gRPC is missing and no server could be queried."""
    if importlib.util.find_spec("grpc") is None:
        raise NotHere("grpcio is not installed", PACKAGES_COMMAND)


class EngineTrouble(ServerTrouble):
    """Raised when the machine or its container engine failed, not a server or a model.

    ``passing``: worth another try.
    """

    def __init__(self, message: str, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True)
class ServerIdentity:
    """The identity of a server.

    ``version``: its TensorFlow (PEP 440), None when unknown; ``digest``: of the image.
    """

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
    """How a server ended.

    ``signal``: the number of the signal that killed it, even where a shell reported it as 128 + n.
    """

    code: int
    oom_killed: bool = False
    signal: int | None = None
    started: str = ""
    finished: str = ""
    error: str = ""

    @classmethod
    def of(cls, code: int, **more: Any) -> ExitState:
        """Return the exit state for a status in the form of a shell (128 + n for a signal) or of
        Python (-n).
        """
        by_shell = code - 128 if code - 128 in set(signals.Signals) else None
        killed = -code if code < 0 else by_shell
        return cls(code, signal=killed, **more)

    @property
    def from_outside(self) -> bool:
        """Return whether the server was ended from outside: no model sends such a signal, and the
        memory limit is recognised separately.
        """
        return (
            self.signal in (signals.SIGKILL, signals.SIGTERM, signals.SIGINT, signals.SIGHUP)
            and not self.oom_killed
        )

    def __str__(self) -> str:
        if self.oom_killed:
            return "ran out of its memory limit (COMPAT_SERVER_MEMORY=8g raises it)"
        if self.signal is not None:
            return f"was killed by {signal_name(self.signal)}"
        return f"ended with status {self.code}{f' ({self.error})' if self.error else ''}"


class Server(abc.ABC):
    """A started server.

    It is over when ``exit_state`` says so; ``stop`` is called once in any case.
    """

    name: str

    @abc.abstractmethod
    def endpoint(self) -> Endpoint | None:
        """Return where the server will answer; None while that is unknown. Raises EngineTrouble."""

    @abc.abstractmethod
    def exit_state(self) -> ExitState | None:
        """Return how the server ended; None while it runs. Raises EngineTrouble."""

    @abc.abstractmethod
    def log_size(self) -> int:
        """Return the bytes of the log so far: a mark for ``logs``."""

    @abc.abstractmethod
    def logs(self, start: int = 0) -> str:
        """Return the output on stdout and stderr, from a mark on."""

    @abc.abstractmethod
    def kill(self) -> None:
        """End the server at once; its evidence can still be collected."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End the server if it runs, copy its log and exit state into the evidence, remove it.

        Never raises for a dead server.
        """

    def add(self, name: str) -> None:  # noqa: B027 - most servers see the folder itself
        """Make ``name`` of the folder visible, if the server sees a copy of the folder."""

    def doubt(self, answered: bool) -> str | None:
        """Return a reason of the machine why the server does not answer, or why another process
        answers too (it took a port).

        Else None.
        """
        return None


class Driver(abc.ABC):
    """Starts servers of one identity.

    ``manages`` False: they belong to someone else and have their own models.
    """

    name: str
    manages = True

    def __init__(self) -> None:
        self.retried: list[str] = []  # troubles of the machine that were tried again

    @abc.abstractmethod
    def identify(self) -> ServerIdentity:
        """Return the identity of the servers. Raises NotHere."""

    @abc.abstractmethod
    def seen(self, folder: Path) -> str:
        """Return the path under which a server sees its folder."""

    @abc.abstractmethod
    def start(self, folder: Path, flags: Sequence[str], evidence: Path) -> Server:
        """Start a server.

        Raises NotHere or EngineTrouble; passing troubles have already been retried.
        """

    def close(self) -> None:  # noqa: B027 - nothing to do for most
        """Remove everything left of the started servers, including one whose start was
        interrupted.
        """


_VERSION = re.compile(r"^TensorFlow (ModelServer|Library): *(\S+)", re.MULTILINE)


def read_version(output: str) -> tuple[str | None, dict[str, str]]:
    """Return ``(version of TensorFlow or None, {"ModelServer": ..., "Library": ...})`` from the
    output of ``--version``.
    """
    from packaging.version import InvalidVersion, Version

    found: dict[str, str] = dict(_VERSION.findall(output))
    for name in ("Library", "ModelServer"):
        try:
            return str(Version(found[name])), found
        except (KeyError, InvalidVersion):
            continue
    return None, found
