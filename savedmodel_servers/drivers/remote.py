"""A server that runs already, somewhere, with models of its own: asked, never started, stopped or
told what to load.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from pathlib import Path

from .base import (
    REMOTE,
    REST_PORT,
    Driver,
    Endpoint,
    ExitState,
    NotHere,
    Server,
    ServerIdentity,
    need_grpc,
)

CONNECT_LIMIT = 10.0  # seconds

_ADDRESS = re.compile(
    r"(?P<host>\[[^/\[\]]+\]|[^:/\[\]]+):(?P<grpc>\d+)(?:,(?P<rest>\d+))?(?:/(?P<model>[^/]+))?"
)


class RemoteDriver(Driver):
    """``HOST:GRPC[,REST][/MODEL]``.

    Without a model name a model is asked by the name of its own folder.
    """

    manages = False

    def __init__(self, address: str) -> None:
        """Raise ValueError for an invalid address."""
        super().__init__()
        match = _ADDRESS.fullmatch(address)
        ports = [int(port) for port in match.group("grpc", "rest") if port] if match else []
        if match is None or not all(0 < port < 65536 for port in ports):
            raise ValueError(f"{address!r} is not HOST:GRPC_PORT[,REST_PORT][/MODEL]")
        self.name = f"remote:{address}"
        self.model: str | None = match["model"]
        self._endpoint = Endpoint(
            match["host"].strip("[]"), ports[0], ports[1] if match["rest"] else None
        )

    def identify(self) -> ServerIdentity:
        """Return the identity, without a version, which the API does not tell.

        Raises NotHere when nothing listens.
        """
        need_grpc()
        for port in filter(None, (self._endpoint.grpc_port, self._endpoint.rest_port)):
            try:
                socket.create_connection((self._endpoint.host, port), CONNECT_LIMIT).close()
            except OSError as error:
                ports = (
                    f"--port={self._endpoint.grpc_port}"
                    f" --rest_api_port={self._endpoint.rest_port or REST_PORT}"
                )
                command = (
                    f"tensorflow_model_server {ports} --model_name=MODEL"
                    " --model_base_path=/PATH/MODEL on that machine"
                )
                raise NotHere(
                    f"nothing answers at {self._endpoint.host}, port {port}: {error}", command
                ) from None
        return ServerIdentity(REMOTE, None, details={"address": self.name.partition(":")[2]})

    def seen(self, folder: Path) -> str:
        return str(folder)

    def start(self, folder: Path, flags: Sequence[str], evidence: Path) -> RemoteServer:
        self.identify()
        return RemoteServer(self.name, self._endpoint)


class RemoteServer(Server):
    """Somebody else's server: neither its log nor its end can be seen."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self.name, self._endpoint = name, endpoint

    def endpoint(self) -> Endpoint | None:
        return self._endpoint

    def exit_state(self) -> ExitState | None:
        return None

    def log_size(self) -> int:
        return 0

    def logs(self, start: int = 0) -> str:
        return ""

    def kill(self) -> None:
        """Not ours to kill."""

    def stop(self) -> None:
        """Not ours to stop."""
