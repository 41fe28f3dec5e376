"""The report on a terminal: what is unexpected first, then the matrix, the counts, and where the files are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from compat_matrix.outcomes import ExitCode, Outcome
from compat_matrix.plan import Cell, Plan
from compat_matrix.report import grid
from compat_matrix.results import Result, one_line

MAX_LISTED = 40  # of one kind of trouble; the rest is counted and stands in summary.json
MAX_ROWS = 40  # of more artifacts than this, only those that do not pass everything have a row
MAX_SKEW = 600  # characters of what is told of a version skew
WIDTH = 120  # where no terminal says how wide it is

EXIT_WORDS = {
    ExitCode.AS_EXPECTED: "as expected",
    ExitCode.UNEXPECTED: "unexpected results",
    ExitCode.STALE_EXPECTATION: "stale expectations",
    ExitCode.INCOMPLETE: "incomplete run",
    ExitCode.HARNESS_ERROR: "harness or environment error",
}
LEDGER_WORDS = {
    "dead_entry": "selects no cell",
    "too_wide": "selects too many cells without `wide`",
    "overlap": "selected by more than one entry",
    "expired": "expired",
}


def render(
    plan: Plan, results: Iterable[Result], summary: Mapping[str, Any], console: Console, files: Iterable[str] = ()
) -> None:
    """Print the report of a run. ``files``: paths of the outputs, shown at the end."""
    by_cell = {result.cell: result for result in results}
    _unexpected(summary, by_cell, console)
    _ledger(summary["ledger"], console)
    if plan.is_grid:
        for table in grid.tables(grid.tally(plan, by_cell)):
            console.print(grid.terminal_table(table))
    else:
        _artifacts(plan, by_cell, console)
    _counts(summary, console)
    for path in files:
        console.print(Text(f"  {path}"))
    code = ExitCode(summary["exit_code"])
    console.print(Text(f"exit {int(code)}: {EXIT_WORDS[code]}", style="bold green" if code == 0 else "bold red"))


def _artifacts(plan: Plan, by_cell: Mapping[str, Result], console: Console) -> None:
    seen, told = rows_of(plan, by_cell)
    if len(told) < len(seen):
        passed = len(seen) - len(told)
        console.print(
            f"{passed} of {len(seen)} artifacts pass everything that was asked; the other {len(told)}:", highlight=False
        )
    if told:
        console.print(matrix_table(plan, by_cell, told))


def _unexpected(summary: Mapping[str, Any], by_cell: Mapping[str, Result], console: Console) -> None:
    facts = summary["unexpected"]
    if not facts:
        console.print(Text("nothing unexpected", style="green"))
        return
    console.print(Text(f"{len(facts)} unexpected", style="bold red"))
    for fact in facts[:MAX_LISTED]:
        wanted = fact.get("wanted")
        expected = " ".join(filter(None, (wanted["outcome"], wanted["error_class"], wanted["message"]))) if wanted else "PASS"
        if fact["outcome"] == Outcome.DISAGREE and not wanted:
            expected = "the same of both"
        console.print(Text(f"  {fact['outcome']:<14} {fact['cell']}", style="red"), Text(f"(expected {one_line(expected, 100)})"))
        what = one_line(f"{fact['error_class'] or ''} {fact['message']}", 300)
        if what:
            console.print(Text(f"      {what}"), soft_wrap=True)
        skew = by_cell[fact["cell"]].skew if fact["cell"] in by_cell else ""
        if skew:
            console.print(Text(f"      skew: {one_line(skew, MAX_SKEW)}"), soft_wrap=True)
    _rest(facts, console)


def _ledger(ledger: Mapping[str, Any], console: Console) -> None:
    for kind in LEDGER_WORDS:
        for line in ledger_lines(kind, ledger[kind])[:MAX_LISTED]:
            console.print(Text(f"expectations: {line}", style="red"), soft_wrap=True)
        _rest(ledger[kind], console)


def ledger_lines(kind: str, facts: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is wrong with the ledger, a line for each fact of one kind."""
    lines = []
    for fact in facts:
        who = fact.get("title") or f"{fact['cell']} ({'; '.join(fact['titles'])})"
        more = {"too_wide": f": {fact.get('cells')}", "expired": f" on {fact.get('until')}"}.get(kind, "")
        lines.append(f"{who} {LEDGER_WORDS[kind]}{more}")
    return lines


def _rest(facts: list[Any], console: Console) -> None:
    if len(facts) > MAX_LISTED:
        console.print(Text(f"  ... and {len(facts) - MAX_LISTED} more, see summary.json"))


def rows_of(plan: Plan, by_cell: Mapping[str, Result]) -> tuple[set[str], set[str]]:
    """Artifacts with something observed, and those of them that get a row of the table."""
    observed = [
        (plan.by_id[cell], result) for cell, result in by_cell.items() if cell in plan.by_id and result.outcome.observable
    ]
    seen = {cell.artifact_id for cell, _ in observed}
    failed = {cell.artifact_id for cell, result in observed if result.outcome is not Outcome.PASS or result.expected is False}
    return seen, seen if len(seen) <= MAX_ROWS else failed


def matrix_table(plan: Plan, by_cell: Mapping[str, Result], told: set[str]) -> Table:
    """Rows: the artifacts ``told``. Columns: how it was made, the consumers; in each field what the checks came to."""
    consumers = list(dict.fromkeys((c.consumer, c.consumer_version) for c in plan if not c.is_production))
    fields: dict[str, dict[tuple[str, str], list[Cell]]] = {}
    for cell in plan:
        fields.setdefault(cell.artifact_id, {}).setdefault((cell.consumer, cell.consumer_version), []).append(cell)
    table = Table(Column("artifact", no_wrap=True, overflow="fold"), "made", header_style="bold")
    for name, version in consumers:
        table.add_column(f"{name}\n{version}")
    for artifact, columns in fields.items():
        if artifact not in told:
            continue
        made = [cell for key, cells in columns.items() if key not in consumers for cell in cells]
        field = field_text(made, by_cell) if made else Text("committed", style="dim")
        table.add_row(artifact, field, *(field_text(columns.get(key, []), by_cell) for key in consumers))
    return table


def field_text(cells: list[Cell], by_cell: Mapping[str, Result]) -> Text:
    """What the checks of one artifact and one consumer came to, in words; the bad ones first, with the checks' names."""
    unexpected: dict[str, list[str]] = {}
    known: Counter[str] = Counter()
    for cell in cells:
        result = by_cell.get(cell.id)
        if result and result.expected is False:
            unexpected.setdefault(str(result.outcome), []).append(cell.check)
        else:
            known[str(result.outcome if result else Outcome.NOT_RUN)] += 1
    parts = [Text(f"{outcome} {','.join(checks)}", style="bold red") for outcome, checks in unexpected.items()]
    for outcome in Outcome:
        count = known[str(outcome)]
        if count and outcome is Outcome.PASS:
            parts.append(Text(f"pass {count}", style="green"))
        elif count and outcome.gate_failure:
            parts.append(Text(f"known {outcome} {count}", style="yellow"))
        elif count and (outcome is Outcome.NOT_RUN or len(known) == 1):  # n/a only where there is nothing else to say
            parts.append(Text(f"not run {count}" if outcome is Outcome.NOT_RUN else "n/a", style="dim"))
    return Text("\n").join(parts)


def _counts(summary: Mapping[str, Any], console: Console) -> None:
    planned, observed = summary["planned"], summary["observed"]
    console.print(f"planned {planned}, observed {observed}, not run {len(summary['not_run'])}", highlight=False)
    console.print(f"not applicable {summary['not_applicable']} of {summary['cells']} cells", highlight=False)
    for outcome, count in summary["by_outcome"].items():
        if count and Outcome(outcome).observable:
            console.print(f"  {outcome:<14} {count} of {observed} observed", highlight=False)
    if summary["compared"]:
        known = sum(item["expected"] for item in summary["disagreements"])
        agree = summary["compared"] - len(summary["disagreements"])
        console.print(
            f"  the C API and the C++ loader agree in {agree} of {summary['compared']} cells, {known} known otherwise",
            highlight=False,
        )
    if summary.get("not_carried"):
        text = (
            f"  {summary['not_carried']} requests that JSON cannot carry were not asked over REST (details.not_carried says why)"
        )
        console.print(text, highlight=False)
    for reason, count in Counter(item["reason"] for item in summary["not_run"]).most_common(8):
        # Not wrapped: it may end in a command to copy.
        console.print(Text(f"  NOT_RUN        {count}: {one_line(reason, 400)}", style="yellow"), soft_wrap=True)
    waiting = len(summary["ledger"]["listed_not_run"])
    if waiting:
        console.print(f"  {waiting} expectation entries have cells that did not run", highlight=False)
