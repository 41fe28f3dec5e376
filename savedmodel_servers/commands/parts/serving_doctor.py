"""``savedmodel-compat runtimes doctor``: the packages, the engine, the images, and the
servers that are named.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from savedmodel_common.command_line.examined import Examined
from savedmodel_servers import drivers
from savedmodel_servers.drivers import (
    EngineTrouble,
    NotHere,
    engine,
    images,
)
from savedmodel_servers.drivers.base import PACKAGES_COMMAND
from savedmodel_servers.drivers.docker import DockerDriver
from savedmodel_standin import LABEL

REAL = "tensorflow/serving"


def examine(servers: Sequence[str], needed: bool) -> Iterator[Examined]:
    """Yield what model servers need, and these servers.

    Raises click.UsageError for a word that names no server.

    ``needed``: servers were asked for. Otherwise what is missing is optional.
    """
    for one in _examined(servers):
        yield replace(one, needed=needed)


def _examined(servers: Sequence[str]) -> Iterator[Examined]:
    try:
        wanted = [drivers.of(spec) for spec in servers]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    yield from _packages()
    if not wanted or any(isinstance(one, DockerDriver) for one in wanted):
        yield from _engine()
    for driver in wanted:
        yield _server(driver)


def _lacks(what: str, missing: NotHere) -> Examined:
    return Examined(what, missing.reason, ok=False, command=missing.command)


def _packages() -> Iterator[Examined]:
    for name in ("grpcio", "docker"):
        try:
            yield Examined(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield _lacks(name, NotHere("not installed", PACKAGES_COMMAND))


def _engine() -> Iterator[Examined]:
    try:
        client = engine.connect()
    except NotHere as missing:
        yield _lacks("engine", missing)
        return
    try:
        with engine.asked("info"):
            info, version = client.info(), client.version()
        name = (version.get("Components") or [{}])[0].get("Name", "engine")
        says = (
            f"{name} {version.get('Version')}, API {version.get('ApiVersion')},"
            f" {info.get('OperatingSystem')}"
        )
        machine = [
            f"{info.get('NCPU')} CPUs",
            f"{int(info.get('MemTotal') or 0) / 2**30:.1f} GiB",
            str(info.get("Driver")),
        ]
        yield Examined("engine", says, details={"machine": machine})
        yield from _images(client)
    except EngineTrouble as trouble:
        yield Examined("engine", str(trouble), ok=False)
    finally:
        client.close()


def _images(client: Any) -> Iterator[Examined]:
    """Yield the images of the real server and those of the stand-in. One of either suffices."""
    with engine.asked("images"):
        real = images.tags(client, name=REAL)
        own = images.tags(client, filters={"label": LABEL})
    there = bool(real or own)
    for what, tags, command in (
        (f"images of {REAL}", real, f"docker pull {REAL}:2.19.1"),
        ("images of the stand-in", own, images.BUILD_STANDIN),
    ):
        yield Examined(what, ", ".join(tags) or "none", ok=there, command="" if tags else command)


def _server(driver: drivers.Driver) -> Examined:
    try:
        identity = driver.identify()
    except NotHere as missing:
        return _lacks(driver.name, missing)
    except EngineTrouble as trouble:
        return Examined(driver.name, str(trouble), ok=False)
    finally:
        driver.close()
    says = f"{identity.kind}, TensorFlow {identity.version or 'of a version that it does not tell'}"
    details = {
        name: [str(value)]
        for name, value in {"digest": identity.digest, **identity.details}.items()
        if value
    }
    return Examined(driver.name, says, details=details)
