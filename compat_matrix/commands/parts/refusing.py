"""Refusals of a command: a message with its exit code, trouble of the machine as such a message, a
file that must exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from savedmodel_common.exit_codes import ExitCode

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Refused(click.ClickException):
    """A message and the exit code of it."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = int(code)  # type: ignore[misc]  # click declares its default as a class variable


@contextmanager
def refusing_trouble() -> Iterator[None]:
    """Turn trouble with runtimes and servers into one line and an exit code: 64 for an unknown
    runtime, else 4.
    """
    from compat_matrix.runtimes.places import RuntimeTrouble, ServerTrouble, UnknownRuntime

    try:
        yield
    except (ServerTrouble, RuntimeTrouble) as error:
        raise Refused(
            str(error),
            ExitCode.USAGE if isinstance(error, UnknownRuntime) else ExitCode.HARNESS_ERROR,
        ) from error
