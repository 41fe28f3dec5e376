"""``savedmodel-compat serving``: what a server needs on this machine, the stand-in's image, and what was left behind."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import click

from compat_matrix.cli import HARNESS_ERROR, printable
from compat_matrix.outcomes import ExitCode


@click.group()
def serving() -> None:
    """TensorFlow Serving, and the stand-in of this project where no image of it can be had."""


def told(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turns what is missing, and trouble of the engine, into one line and exit code 4."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        from compat_matrix.consumers.serving.drivers import EngineTrouble, NotHere

        try:
            return command(*args, **options)
        except (NotHere, EngineTrouble) as error:
            click.echo(f"Error: {printable(str(error))}", err=True)
            return HARNESS_ERROR

    return run


@serving.command()
@click.option("--all", "everything", is_flag=True, help="Also those of harnesses that still run, and of other machines.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@told
def cleanup(everything: bool, dry_run: bool) -> int:
    """Remove the containers and server processes of runs that ended without doing so (kill -9)."""
    from compat_matrix.consumers.serving import cleanup as left
    from compat_matrix.consumers.serving.drivers import NotHere, engine

    count = 0
    well = True

    def tell(found: Iterator[left.Found]) -> None:
        nonlocal count, well
        for one in found:
            done = "not removed" if one.trouble else "removed" if one.removed else "would be removed" if dry_run else "stays"
            if not one.removed and not one.trouble and not everything and one.state != left.DEAD:
                done = "stays"
            click.echo(printable(f"{one.what}: {one.state}: {done}{one.trouble and f': {one.trouble}'}", newlines=False))
            count, well = count + one.removed, well and not one.trouble

    tell(left.processes(everything, dry_run))
    try:
        client = engine.connect()
    except NotHere as missing:
        click.echo(printable(f"containers: {missing.reason}"))
    else:
        try:
            tell(left.containers(client, everything, dry_run))
        finally:
            client.close()
    if not dry_run:
        click.echo(f"{count} removed")
    return int(ExitCode.AS_EXPECTED if well else ExitCode.HARNESS_ERROR)


@serving.command()
@click.argument("servers", metavar="[SERVER]...", nargs=-1)
@told
def doctor(servers: tuple[str, ...]) -> int:
    """Check what serving needs: the packages, the engine, the images, and each SERVER that is named.

    A SERVER is an image (tensorflow/serving:2.19.1), standin, binary[:PATH] or remote:HOST:GRPC[,REST][/MODEL]. Exit code 4 when
    something that is needed is missing; the command that would provide it is shown.
    """
    from compat_matrix.commands.serving_doctor import examine

    return examine(servers)


@serving.command()
@click.option("--tensorflow", metavar="RUNTIME", default="local", show_default=True, help="Whose TensorFlow it serves with.")
@click.option("--tag", help="The image's name; savedmodel-compat-standin:VERSION without it.")
@told
def image(tensorflow: str, tag: str | None) -> int:
    """Build the stand-in's image from this machine's own files; no registry is asked."""
    from compat_matrix.consumers.serving.drivers import engine

    client = engine.connect()
    try:
        click.echo(importlib.import_module("compat_matrix.runtimes.standin.image").build(client, tag))
    finally:
        client.close()
    return int(ExitCode.AS_EXPECTED)
