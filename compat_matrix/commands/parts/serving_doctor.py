"""``savedmodel-compat doctor``: the packages, the engine, the images, and the servers that are named."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

import click

from compat_matrix.common.exit_codes import ExitCode
from compat_matrix.common.printable import printable
from compat_matrix.serving import drivers
from compat_matrix.serving.drivers import EngineTrouble, NotHere, engine, images
from compat_matrix.serving.drivers.base import PACKAGES_COMMAND
from compat_matrix.serving.drivers.docker import DockerDriver

REAL = "tensorflow/serving"


def examine(servers: Sequence[str]) -> int:
    """Print all checks; the exit code. Raises click.UsageError for a word that names no server."""
    try:
        wanted = [drivers.of(spec) for spec in servers]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    well = _packages()
    if not wanted or any(isinstance(one, DockerDriver) for one in wanted):
        well &= _engine()
    for driver in wanted:
        well &= _server(driver)
    return int(ExitCode.AS_EXPECTED if well else ExitCode.HARNESS_ERROR)


def _say(text: str) -> None:
    click.echo(printable(text, newlines=False))


def _lacks(what: str, missing: NotHere) -> bool:
    _say(f"{what}: {missing.reason}")
    _say(f"  to provide it: {missing.command}")
    return False


def _packages() -> bool:
    well = True
    for name in ("grpcio", "docker"):
        try:
            _say(f"{name}: {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            well = _lacks(name, NotHere("not installed", PACKAGES_COMMAND))
    return well


def _engine() -> bool:
    try:
        client = engine.connect()
    except NotHere as missing:
        return _lacks("engine", missing)
    try:
        with engine.asked("info"):
            info, version = client.info(), client.version()
        name = (version.get("Components") or [{}])[0].get("Name", "engine")
        _say(f"engine: {name} {version.get('Version')}, API {version.get('ApiVersion')}, {info.get('OperatingSystem')}")
        _say(f"  {info.get('NCPU')} CPUs, {int(info.get('MemTotal') or 0) / 2**30:.1f} GiB, {info.get('Driver')}")
        return _images(client)
    except EngineTrouble as trouble:
        _say(f"engine: {trouble}")
        return False
    finally:
        client.close()


def _images(client: Any) -> bool:
    """Whether there is one to serve with."""
    with engine.asked("images"):
        real = sorted(tag for one in client.images.list(name=REAL) for tag in one.tags)
        own = sorted(tag for one in client.images.list(filters={"label": images.STANDIN_LABEL}) for tag in one.tags)
    _say(f"images of {REAL}: {', '.join(real) or f'none; to provide one: docker pull {REAL}:2.19.1'}")
    _say(f"images of the stand-in: {', '.join(own) or f'none; to provide one: {images.BUILD_STANDIN}'}")
    return bool(real or own)


def _server(driver: drivers.Driver) -> bool:
    try:
        identity = driver.identify()
    except NotHere as missing:
        return _lacks(driver.name, missing)
    except EngineTrouble as trouble:
        _say(f"{driver.name}: {trouble}")
        return False
    finally:
        driver.close()
    _say(f"{driver.name}: {identity.kind}, TensorFlow {identity.version or 'of a version that it does not tell'}")
    for name, value in {"digest": identity.digest, **identity.details}.items():
        if value:
            _say(f"  {name}: {value}")
    return True
