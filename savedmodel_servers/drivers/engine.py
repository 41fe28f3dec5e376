"""The container engine: reached, or why not, with the command that would help.

Docker's, or podman behind DOCKER_HOST.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from savedmodel_common import interrupts

from .base import PACKAGES_COMMAND, EngineTrouble, NotHere

TIMEOUT = 60  # seconds for one answer of the engine
SOCKET = "/var/run/docker.sock"


def connect() -> Any:
    """A client of the engine that DOCKER_HOST names, else of the local one. Raises NotHere."""
    try:
        import docker
        from docker.errors import DockerException
    except ImportError as error:
        raise NotHere(f"the docker SDK is not installed ({error})", PACKAGES_COMMAND) from None
    import requests

    try:
        _knock()
        client = docker.from_env(timeout=TIMEOUT)
    except (DockerException, requests.RequestException, OSError, ValueError) as error:
        raise _not_here(error) from None
    try:
        client.ping()
    except (DockerException, requests.RequestException, OSError) as error:
        client.close()
        raise _not_here(error) from None
    return client


def remote_host() -> str | None:
    """Return the machine of a remote engine, or None for one on this machine."""
    address = urlsplit(os.environ.get("DOCKER_HOST", ""))
    return address.hostname if address.scheme in ("tcp", "http", "https", "ssh") else None


def _socket() -> str | None:
    """Return the path of the engine's socket, or None for a connection of another kind."""
    host = os.environ.get("DOCKER_HOST")
    if not host:
        return SOCKET
    return host[len("unix://") :] if host.startswith("unix://") else None


def _knock() -> None:
    """Raises OSError when nobody listens on the engine's socket: the SDK hides which error it was,
    and leaves a socket open.
    """
    path = _socket()
    if path is not None and hasattr(socket, "AF_UNIX"):
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(TIMEOUT)
            one.connect(path)


def _not_here(error: BaseException) -> NotHere:
    """Return why the engine does not answer: missing, not started, no permission, or a wrong
    address.
    """
    path, host = _socket(), os.environ.get("DOCKER_HOST")
    where = f"DOCKER_HOST={host}" if host else "the docker engine"
    if path is None or not isinstance(error, OSError):
        return NotHere(f"{where} does not answer: {error}", "docker info")
    if isinstance(error, PermissionError):
        group = f"sudo usermod -aG docker {getpass.getuser()} && newgrp docker"
        return NotHere(f"{where}: permission denied on its socket", group)
    if host:
        start = (
            f"podman system service --time=0 {host}" if "podman" in path else "unset DOCKER_HOST"
        )
        return NotHere(f"{where}: nothing listens on this socket ({error.strerror})", start)
    if shutil.which("dockerd"):
        return NotHere(
            "the docker engine is installed and not started", "sudo systemctl start docker"
        )
    return NotHere(
        "no docker engine is installed",
        "sudo apt-get install -y docker.io && sudo systemctl start docker",
    )


@contextmanager
def asked(what: str) -> Iterator[None]:
    """Turns the engine's errors into EngineTrouble.

    Passing are its own failures, lost connections and a port that was taken.
    """
    import requests
    from docker.errors import APIError, DockerException

    try:
        yield
    except APIError as error:
        text = error.explanation or str(error)
        port = any(
            words in str(text) for words in ("port is already allocated", "address already in use")
        )
        raise EngineTrouble(
            f"{what}: the engine says: {text}", passing=port or not error.is_client_error()
        ) from error
    except (requests.RequestException, DockerException, OSError) as error:
        raise EngineTrouble(f"{what}: the engine does not answer: {error}", passing=True) from error


def created(client: Any, image: str, command: list[str], name: str, **more: Any) -> Any:
    """Create a container, not started.

    Raises EngineTrouble.

    An interruption waits until it is there: an engine goes on with a request whose asker has gone,
    and the container would appear after all were removed. `interrupts.check` raises it then.
    """
    with interrupts.deferred(), asked(f"creating {name}"):
        return client.containers.create(image, command, name=name, **more)
