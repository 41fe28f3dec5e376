"""Drivers, which start servers. ``of`` makes a driver from the words of a command line."""

from __future__ import annotations

import os
import re

from savedmodel_common.printable import like

from .base import (
    REMOTE,
    SERVING,
    STANDIN,
    Driver,
    Endpoint,
    EngineTrouble,
    ExitState,
    NotHere,
    Server,
    ServerIdentity,
)

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
    "read_size",
]


KINDS = (STANDIN, "binary", REMOTE, "docker")
PROCESS = f"{STANDIN}@"  # the stand-in without a container
_SIZE = re.compile(r"(\d+)([kmgt]?)(?:i?b)?", re.IGNORECASE)


def read_size(text: str) -> int | None:
    """Return a number of bytes from "4096", "512m", "8g"; None for nothing. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if not text.strip():
        return None
    if match is None:
        raise ValueError(f"{text!r} is not a number of bytes (8589934592, 8192m, 8g)")
    return int(match[1]) << 10 * " kmgt".index(match[2].lower() or " ")


def of(spec: str, memory: int | None = None, cpus: float | None = None) -> Driver:
    """Return the driver that ``spec`` names; nothing is started.

    ``IMAGE`` or ``docker:IMAGE`` (``tensorflow/serving:2.19.1``, ``...@sha256:...``), ``standin``
    (the newest of this project's images), ``standin:2.21.0``, ``standin@RUNTIME`` (a process on the
    TensorFlow of a runtime), ``binary`` or ``binary:PATH``, ``remote:HOST:GRPC[,REST][/MODEL]``.
    ``memory`` (bytes) and ``cpus`` limit containers; without them COMPAT_SERVER_MEMORY ("8g") and
    COMPAT_SERVER_CPUS do. Raises ValueError for any other spec.
    """
    memory = memory or read_size(os.environ.get("COMPAT_SERVER_MEMORY", ""))
    cpus = cpus or float(os.environ.get("COMPAT_SERVER_CPUS") or 0) or None
    kind, colon, rest = spec.partition(":")
    if kind == "remote" and colon:
        from .remote import RemoteDriver

        return RemoteDriver(rest)
    if kind == "binary" and (rest or not colon):
        from .binary import BinaryDriver

        return BinaryDriver(rest or None)
    if spec.startswith(PROCESS) and spec != PROCESS:
        from .process import StandinDriver

        return StandinDriver(spec[len(PROCESS) :])
    from .docker import DockerDriver

    image = rest if kind == "docker" and colon else spec
    word = re.split("[:@]", spec)[0]
    near = (
        "" if word in KINDS or "/" in word else like(word, KINDS)
    )  # docker:IMAGE names an image that is like one of them
    if not image or image.endswith((":", "@")) or any(char.isspace() for char in image) or near:
        forms = "an image, standin[@RUNTIME], binary[:PATH] or remote:HOST:GRPC[,REST][/MODEL]"
        raise ValueError(f"{spec!r} names no server: {forms}.{near}")
    if image.startswith("standin:") and kind != "docker":
        from savedmodel_standin import REPOSITORY

        image = f"{REPOSITORY}:{rest}"
    return DockerDriver(None if image == "standin" else image, memory, cpus)
