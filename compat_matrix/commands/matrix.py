"""Plan, run and report the compatibility matrix.

Task: Compare TensorFlows
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from pathlib import Path

import click

from compat_matrix.commands.parts import planned
from compat_matrix.commands.parts.expect import expect
from compat_matrix.commands.parts.matrix_run import run
from compat_matrix.commands.parts.plugin_options import asked_plugins, plugin_option
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.verdict import Ledger
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.groups import Group
from savedmodel_common.command_line.lists import list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, unknown


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
    green="the plan is listed",
    asked="nothing: cells are listed, not run",
    not_asked="nothing: it compares nothing",
)
@matrix.command()
@planned.plan_options
@planned.runtime_options
@plugin_option
@list_option("--producer", metavar="NAME", help="Plan this producer too; several by commas.")
@list_option(
    "--consumer",
    metavar="NAME",
    help="Plan this consumer too: a plug-in, or NAME=COMMAND; several by commas.",
)
@click.option("--json", "as_json", is_flag=True, help="The plan as JSON, as `run` writes it.")
@planned.exit_codes
def plan(
    fixtures: Path | None,
    cases: Path | None,
    expectations: Path | None,
    runtimes: tuple[str, ...],
    all_checks: bool,
    servers: tuple[str, ...],
    plugins: Path | None,
    producer: tuple[str, ...],
    consumer: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the cells this machine would run, and what is not applicable and why.

    \b
    Examples:
      savedmodel-compat matrix plan
      savedmodel-compat matrix plan --runtime local --runtime 2.15 --json
    """
    from compat_matrix.plan.planning import make_plan

    registry = asked_plugins(consumer, producer, plugins)
    if wrong := unknown(
        "producer", [name.partition("=")[0] for name in producer], registry.producers
    ):
        raise click.UsageError(wrong)
    ledger = Ledger.parse(ledger_text(planned.ledger_path(expectations, fixtures, cases), registry))
    axes = planned.home_axes(
        planned.asked_runtimes(runtimes) + planned.asked_servers(servers), all_checks
    )
    made = make_plan(ledger, fixtures, cases, axes, registry.planned(producer), registry=registry)
    if as_json:
        click.echo(json.dumps(made.to_json()))
        return
    for cell in made:
        click.echo(
            cell.id + (f"  {cell.decided.outcome}: {cell.decided.reason}" if cell.decided else "")
        )
    decided = Counter(str(cell.decided.outcome) if cell.decided else "to run" for cell in made)
    click.echo(
        f"{counted(len(made.cells), 'cell')}: "
        + ", ".join(f"{count} {what}" for what, count in sorted(decided.items())),
        err=True,
    )


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
