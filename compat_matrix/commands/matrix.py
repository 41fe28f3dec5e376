"""Run the compatibility matrix: every model, every consumer, every check."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import click

from compat_matrix.commands.parts import planned
from compat_matrix.commands.parts.expect import expect
from compat_matrix.commands.parts.matrix_run import run
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.groups import Group
from savedmodel_common.exit_codes import ExitCode


@click.group(cls=Group)
def matrix() -> None:
    """Run the compatibility matrix: every model, every consumer, every check.

    \b
    Exit codes, the first that applies: 64 wrong usage, or nothing was selected; 4 harness or
    environment error; 1 an unexpected failure, or a failure with another error than expected;
    2 stale ledger: a listed cell passes, an entry is dead, too wide, overlapping or expired, or the
    file is invalid; 3 incomplete run, or nothing was compared; 0 as expected; 130 interrupted,
    there is no verdict.
    """


@claims(
    green="the run in the folder is as its ledger expects",
    asked="what that run asked",
    not_asked="what that run did not ask, which the report lists again",
    codes={
        ExitCode.UNEXPECTED: "a cell failed unexpectedly, or otherwise than expected",
        ExitCode.STALE_EXPECTATION: "an entry of the ledger is stale",
        ExitCode.INCOMPLETE: (
            "a cell has no result, nothing was compared, or something named was not asked"
        ),
    },
)
@matrix.command()
@click.argument("out", type=planned.RUN_FOLDER)
@json_option("summary.json")
@planned.exit_codes
def report(out: Path, as_json: bool) -> int:
    """Write the reports of a run again, from the files in its output folder OUT.

    The exit code is that of the run.

    \b
    Examples:
      savedmodel-compat matrix report compat-out
    """
    from rich.console import Console

    from compat_matrix.engine import running

    console = Console(quiet=True) if as_json else running.stdout_console()
    summary = running.report(out.resolve(), console, datetime.date.today())
    if as_json:
        click.echo(json.dumps(summary))
    return int(summary["exit_code"])


matrix.add_command(run)
matrix.add_command(expect)
