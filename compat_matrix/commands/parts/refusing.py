"""What commands share: a message with its exit code, a file that must exist."""

from __future__ import annotations

from pathlib import Path

import click

from compat_matrix.cells.outcomes import ExitCode

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Refused(click.ClickException):
    """A message and the exit code of it."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = int(code)  # type: ignore[misc]  # click declares its default as a class variable
