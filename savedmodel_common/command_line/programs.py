"""Programs for people who work on this project: ``python -m compat_matrix.commands.ops``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from savedmodel_common.command_line.errors import report_error
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable


def run(command: click.Command, words: Sequence[str] | None = None) -> NoReturn:
    """Run a click command as a program of its own, and exit with its exit code.

    The exit codes are those of ``savedmodel-compat``: wrong usage ends with 64.

    Args:
      command: the command.
      words: the arguments; None for those of the process.
    """
    try:
        code = command.main(words, standalone_mode=False)
    except click.UsageError as error:
        error.show()
        code = ExitCode.USAGE
    except click.ClickException as error:
        click.echo(f"Error: {printable(error.format_message())}", err=True)
        code = error.exit_code
    except Exception as error:
        code = report_error(error)
    sys.exit(code if isinstance(code, int) else ExitCode.AS_EXPECTED)
