"""``savedmodel-compat matrix expect``: the ledger of known failures."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import click

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import PLAN_FILE, RESULTS_FILE, Cell, Plan
from compat_matrix.cells.results import is_sealed, not_sealed, of_plan, read_results
from compat_matrix.commands.parts.planned import (
    CELL_ID,
    RUN_FOLDER,
    STALE,
    exit_codes,
    ledger_path,
    plan_options,
    planned,
)
from compat_matrix.commands.parts.plugin_options import about_plugins
from compat_matrix.commands.parts.refusing import EXISTING_FILE, Refused
from compat_matrix.verdict import DEFAULT_PATH, Ledger
from compat_matrix.verdict.entries import Entry
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.groups import Group
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, like
from savedmodel_common.writing import write_text

SHOWN = (
    "error_class",
    "message",
    "producer_version",
    "consumer_version",
    "issue",
    "added",
    "until",
)  # of an entry


@click.group(cls=Group)
def expect() -> None:
    """Check the ledger of known failures, or rewrite it from a run."""


@claims(
    green="no entry is dead, too wide, overlapping or expired",
    asked="every entry, against the plan of the local TensorFlow",
    not_asked="whether an entry is still true: `matrix run` asks that",
    codes={ExitCode.STALE_EXPECTATION: "an entry is stale, or the file is not valid"},
)
@expect.command("check")
@click.argument("cell_id", type=CELL_ID, metavar="[CELL]", required=False)
@plan_options
@json_option(page="docs/releases/ledger.md")
@exit_codes
def expect_check(
    cell_id: str | None,
    fixtures: Path | None,
    cases: Path | None,
    expectations: Path | None,
    as_json: bool,
) -> int:
    """Check the ledger against the plan. Nothing is run.

    The command finds invalid syntax, and entries that are dead, too wide, overlapping or expired.
    With CELL, it prints instead what is expected of this cell, and which entry says so.

    \b
    Examples:
      savedmodel-compat matrix expect check
      savedmodel-compat matrix expect check --expectations ledger.toml
      savedmodel-compat matrix expect check keras_compiled_save/fixture@1.15.5/tf2@2.21.0/load
    """
    from compat_matrix.report.terminal import LEDGER_WORDS, ledger_lines
    from compat_matrix.verdict.ledger import judge_entries
    from savedmodel_common.own_version import tool_version

    ledger = Ledger.read(ledger_path(expectations, fixtures, cases))
    made = planned(ledger, fixtures, cases)
    if cell_id is not None:
        _explain(cell_id, ledger, made, as_json)
        return ExitCode.AS_EXPECTED
    verdict = judge_entries(ledger, made, datetime.date.today(), tool_version())
    problems = {kind: getattr(verdict, kind) for kind in LEDGER_WORDS}
    lines = ledger_lines(problems)
    if as_json:
        click.echo(json.dumps({"schema": 1, "entries": len(ledger.entries), "problems": problems}))
    else:
        for line in lines:
            click.echo(line)
    click.echo(
        f"{counted(len(ledger.entries), 'entry')}, {counted(len(lines), 'problem')}", err=True
    )
    return int(STALE if verdict.stale else ExitCode.AS_EXPECTED)


@claims(
    green="the ledger is rewritten from the run",
    asked="nothing: it reads the results of a complete run",
    not_asked="nothing: it compares nothing",
    codes={
        ExitCode.STALE_EXPECTATION: (
            "the run is not complete, is unstable, or a new failure has no reason"
        )
    },
)
@expect.command("update")
@click.argument("out", type=RUN_FOLDER)
@click.option(
    "--expectations",
    type=EXISTING_FILE,
    default=DEFAULT_PATH,
    help="The file to rewrite (default: ours).",
)
@click.option(
    "--reason", default="", help="Why the new failures are known. Required if there are any."
)
@exit_codes
def expect_update(out: Path, expectations: Path, reason: str) -> None:
    """Rewrite the ledger from the complete run in OUT.

    Stale entries are removed, or replaced by entries for the cells that still fail. New failures
    become one entry for each consumer and error, with lists of cases, producers and checks. Merge
    and reword them by hand. Comments are kept.

    \b
    Examples:
      savedmodel-compat matrix expect update compat-out --expectations ledger.toml --reason 'known since 2.21'
    """  # noqa: E501
    from compat_matrix.cells.run_file import RunFile
    from compat_matrix.verdict.new_entries import UpdateRefused
    from compat_matrix.verdict.update import update

    ours = expectations.samefile(DEFAULT_PATH)
    if ours and not RunFile.read(out).is_about_ours:
        raise Refused(
            "the run was of other cases than ours, all our entries would seem dead: use"
            " --expectations",
            STALE,
        )
    if not is_sealed(out / RESULTS_FILE):
        raise Refused(not_sealed(f"the run in {out}"), STALE)
    made = Plan.read(out / PLAN_FILE)
    results = of_plan(read_results(out / RESULTS_FILE), made)
    if not ours:
        made = about_plugins(made, out)
    try:
        results = {cell: result for cell, result in results.items() if cell in made.by_id}
        text = expectations.read_text(encoding="utf-8")
        done = update(text, made, results, reason, datetime.date.today())
    except UpdateRefused as error:
        raise Refused(str(error), STALE) from error
    write_text(expectations, done.text)
    for change in done.changes:
        click.echo(change)
    click.echo(f"{expectations}: {counted(len(done.changes), 'change')}", err=True)


def _explain(cell_id: str, ledger: Ledger, plan: Plan, as_json: bool) -> None:
    """Print what is expected of a cell, and by which entry. Raises Refused for an unknown cell."""
    known = plan.by_id
    cell = known.get(cell_id)
    if cell is None:
        near = like(cell_id, known)
        raise Refused(
            f"no such cell: {cell_id} (savedmodel-compat matrix run --dry-run lists them).{near}",
            ExitCode.USAGE,
        )
    entry = ledger.entry_for(cell)
    outcomes = [Outcome.PASS]
    if cell.decided:
        outcomes = [cell.decided.outcome]
    elif entry:
        outcomes = [entry.outcome, *entry.others]
    expected, decided = list(map(str, outcomes)), cell.decided.reason if cell.decided else ""
    entries = [_explained(entry, cell) for entry in ledger.entries if entry.names(cell)]
    if as_json:
        click.echo(
            json.dumps(
                {
                    "schema": 1,
                    "cell": cell_id,
                    "expected": expected,
                    "decided": decided,
                    "entries": entries,
                }
            )
        )
        return
    click.echo(
        f"{expected[0]}, decided by the plan: {decided}"
        if cell.decided
        else f"{' or '.join(expected)} is expected"
    )
    for one in entries:
        here = "applies" if one["applies"] else "is for other versions"
        click.echo(f"{one['title']} {here}: {one['kind']}, {one['reason']}")
        for name in SHOWN:
            if one[name]:
                click.echo(f"  {name}: {one[name]}")


def _explained(entry: Entry, cell: Cell) -> dict[str, Any]:
    """Return an entry of the ledger that names a cell, and whether it applies to the versions of
    that cell.
    """
    told = {name: str(getattr(entry, name) or "") for name in ("kind", "reason", *SHOWN)}
    return {"title": entry.title(), "applies": entry.selects(cell), **told}
