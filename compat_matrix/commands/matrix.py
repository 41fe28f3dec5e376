"""Plan, run and report the compatibility matrix."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import click

from compat_matrix.commands.parts import planned
from compat_matrix.commands.parts.expect import expect
from compat_matrix.commands.parts.matrix_run import run
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.groups import Group
from savedmodel_common.exit_codes import ExitCode


@click.group(cls=Group)
def matrix() -> None:
    """Plan, run and report the compatibility matrix.

    \b
    Exit codes, the first that applies: 64 usage or an empty selection, 4 harness or environment
    error, 1 unexpected failure or other error, 2 stale expectation (a listed cell passes, a dead,
    too wide, overlapping or expired entry, an invalid file), 3 incomplete run or nothing compared,
    0 as expected. An interrupted command (SIGINT, SIGTERM) ends with 130 and gives no verdict.
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
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="The content of summary.json on stdout, in place of the report.",
)
@planned.exit_codes
def report(out: Path, as_json: bool) -> int:
    """Judge and render a run again, from the files in its folder alone; ends with the exit code of
    that run.

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
