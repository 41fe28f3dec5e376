"""What the commands about this machine share: trouble with it is one line and an exit code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from compat_matrix.cli import HARNESS_ERROR, USAGE
from compat_matrix.common.printable import printable


def told(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn trouble with runtimes and servers into one line and an exit code: 64 for an unknown runtime, else 4."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        from compat_matrix.runtimes.places import RuntimeTrouble, UnknownRuntime
        from compat_matrix.serving.drivers.base import EngineTrouble, NotHere

        try:
            return command(*args, **options)
        except (NotHere, EngineTrouble, RuntimeTrouble) as error:
            click.echo(f"Error: {printable(str(error))}", err=True)
            return USAGE if isinstance(error, UnknownRuntime) else HARNESS_ERROR

    return run
