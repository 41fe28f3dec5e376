"""Drivers: who starts a server, and how. ``of`` makes one of the words of a command line."""

from __future__ import annotations

from .base import REMOTE, SERVING, STANDIN, Driver, Endpoint, EngineTrouble, ExitState, NotHere, Server, ServerIdentity

__all__ = [
    "REMOTE",
    "SERVING",
    "STANDIN",
    "Driver",
    "Endpoint",
    "EngineTrouble",
    "ExitState",
    "NotHere",
    "Server",
    "ServerIdentity",
    "of",
]


def of(spec: str, memory: int | None = None, cpus: float | None = None) -> Driver:
    """The driver that ``spec`` names; nothing is asked or started.

    ``IMAGE`` or ``docker:IMAGE`` (``tensorflow/serving:2.19.1``, ``...@sha256:...``), ``standin`` (the newest of this project's
    images) or ``standin:2.21.0``, ``binary`` or ``binary:PATH``, ``remote:HOST:GRPC[,REST][/MODEL]``. ``memory`` (bytes) and
    ``cpus`` limit containers.
    Raises ValueError for what is none of these.
    """
    kind, colon, rest = spec.partition(":")
    if kind == "remote" and colon:
        from .remote import RemoteDriver

        return RemoteDriver(rest)
    if kind == "binary" and (rest or not colon):
        from .binary import BinaryDriver

        return BinaryDriver(rest or None)
    from .docker import DockerDriver

    image = rest if kind == "docker" and colon else spec
    if not image or image.endswith(":") or any(char.isspace() for char in image):
        raise ValueError(f"{spec!r} names no server: an image, standin, binary[:PATH] or remote:HOST:GRPC[,REST][/MODEL]")
    if image.startswith("standin:") and kind != "docker":
        from .images import STANDIN_REPOSITORY

        image = f"{STANDIN_REPOSITORY}:{rest}"
    return DockerDriver(None if image == "standin" else image, memory, cpus)
