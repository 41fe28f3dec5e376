"""The report on a terminal: unexpected cells first, then the matrix, the counts, and the paths of
the files.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from compat_matrix.cells import tries
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import DESELECTED, Result, not_sealed, one_line
from compat_matrix.report import grid, written_by
from compat_matrix.verdict import named, tally
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.gist import of_graph_error

MAX_LISTED = 40  # of one kind of problem; the others are counted and stand in summary.json
MAX_ROWS = 40  # with more artifacts than this, only those that do not pass every check have a row
MAX_SKEW = 600  # characters of the text about a version skew
DIVISIONS = 8  # artifacts that releases answer otherwise, in the overview
WIDTH = 120  # without a terminal
FORETOLD = {  # of `summary.json`, in the words of the report
    "right": "right",
    "wrong": "wrong",
    "explained": "explained by the ledger",
    "unknown": "cells without one",
}
MIN_COLUMN, PADDING = 10, 3  # of a consumer: room for "not run 12"; the frame and two blanks
_Consumer = tuple[str, str]  # name and version

EXIT_WORDS = {
    ExitCode.AS_EXPECTED: "as expected",
    ExitCode.UNEXPECTED: "unexpected results",
    ExitCode.STALE_EXPECTATION: "stale expectations",
    ExitCode.INCOMPLETE: "incomplete run",
    ExitCode.HARNESS_ERROR: "harness or environment error",
}
NOT_COMPARED = (  # the reason of a check that had no answers to compare begins so
    "nothing was compared: "
)
LEDGER_WORDS = {
    "dead_entry": "selects no cell",
    "too_wide": "selects too many cells without `wide`",
    "overlap": "selected by more than one entry",
    "expired": "expired",
}


def render(
    plan: Plan,
    results: Iterable[Result],
    summary: Mapping[str, Any],
    console: Console,
    files: Iterable[str] = (),
) -> None:
    """Print the report of a run. ``files``: paths of the outputs, shown at the end."""
    by_cell = {result.cell: result for result in results}
    _unexpected(summary, by_cell, console)
    _ledger(summary["ledger"], console)
    if plan.is_grid:
        for table in tally.tables(tally.tally(plan, by_cell)):
            console.print(grid.terminal_table(table))
    else:
        _artifacts(plan, by_cell, console)
        _writers(plan, by_cell, console)
    _counts(summary, console)
    _unexpected_again(summary["unexpected"], console)
    for path in files:
        console.print(Text(f"  {path}"))
    code = ExitCode(summary["exit_code"])
    past = summary["run"].get("past")
    words = EXIT_WORDS[code] + (f", in {past['text']}" if past else "")
    console.print(
        Text(f"exit {int(code)}: {words}", style="bold green" if code == 0 else "bold red"),
        soft_wrap=True,
    )


def _artifacts(plan: Plan, by_cell: Mapping[str, Result], console: Console) -> None:
    seen, told = rows_of(plan, by_cell)
    if len(told) < len(seen):
        passed = len(seen) - len(told)
        console.print(
            f"{passed} of {len(seen)} artifacts pass everything that was asked; the other"
            f" {len(told)}:",
            highlight=False,
        )
    if told:
        for table in matrix_tables(plan, by_cell, told, console.width):
            console.print(table)


def _writers(plan: Plan, by_cell: Mapping[str, Result], console: Console) -> None:
    told = [(cell, by_cell[cell.id]) for cell in plan if cell.id in by_cell]
    found = written_by.writers(
        [
            {
                **vars(cell),
                "consumer_label": cell.consumer,
                "outcome": result.outcome.value,
                "expected": result.expected is not False,
            }
            for cell, result in told
        ]
    )
    if found:
        console.print(written_by.line(found), highlight=False)


def _unexpected(
    summary: Mapping[str, Any], by_cell: Mapping[str, Result], console: Console
) -> None:
    facts = summary["unexpected"]
    if not facts and summary["exit_code"] == ExitCode.INCOMPLETE and not summary["answered"]:
        console.print(Text("nothing was compared", style="bold red"))
        return
    if not facts:
        console.print(Text("nothing unexpected", style="green"))
        return
    console.print(Text(f"{len(facts)} unexpected{_unstable_words(summary)}", style="bold red"))
    for fact in facts[:MAX_LISTED]:
        wanted = fact.get("wanted")
        expected = (
            " ".join(filter(None, (wanted["outcome"], wanted["error_class"], wanted["message"])))
            if wanted
            else "PASS"
        )
        if fact["outcome"] == Outcome.DISAGREE and not wanted:
            expected = "the same of both"
        console.print(
            Text(f"  {fact['outcome']:<14} {fact['cell']}", style="red"),
            Text(f"(expected {one_line(expected, 100)})"),
        )
        found = by_cell.get(fact["cell"])
        said = (of_graph_error(found.message) if found else "") or fact["message"]
        what = one_line(f"{fact['error_class'] or ''} {said}", 300)
        if what:
            console.print(Text(f"      {what}"), soft_wrap=True)
        if fact.get("prediction"):
            console.print(Text(f"      {one_line(fact['prediction'], MAX_SKEW)}"), soft_wrap=True)
        skew = found.skew if found else ""
        if skew:
            console.print(Text(f"      skew: {one_line(skew, MAX_SKEW)}"), soft_wrap=True)
        for line in _second_try_lines(found) if found else ():
            console.print(Text(f"      {line}"), soft_wrap=True)
    _rest(facts, console)


def _unexpected_again(facts: list[Any], console: Console) -> None:
    """Print the unexpected cells once more, a line each: a log often shows no more than its end,
    and the tables between may have hundreds of lines.
    """
    for fact in facts[:MAX_LISTED]:
        line = f"  unexpected: {fact['outcome']} {fact['cell']}"
        console.print(Text(line, style="red"), soft_wrap=True)
    _rest(facts, console)


def _unstable_words(summary: Mapping[str, Any]) -> str:
    """Return how many of the unexpected cells are UNSTABLE, and how many were not asked again, to
    follow their number.
    """
    counts = summary.get("second_tries", {})
    words = ""
    if counts.get("unstable"):
        words += f", {counts['unstable']} of them UNSTABLE (another result in a fresh process)"
    if counts.get("not_asked"):
        words += f", {counts['not_asked']} not asked again"
    return words


def _second_try_lines(result: Result) -> Iterator[str]:
    """Yield what the second try adds to the message of a result, and the evidence of an UNSTABLE
    cell.
    """
    if result.outcome is not Outcome.UNSTABLE:
        yield from filter(None, [tries.note_of(result)])
        return
    for name, path in sorted(result.evidence.items()):
        yield f"{name}: {path}"


def _ledger(ledger: Mapping[str, Any], console: Console) -> None:
    for kind in LEDGER_WORDS:
        for line in _lines_of_kind(kind, ledger[kind])[:MAX_LISTED]:
            console.print(Text(f"expectations: {line}", style="red"), soft_wrap=True)
        _rest(ledger[kind], console)


def ledger_lines(ledger: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[str]:
    """Return the problems of the ledger, a line for each fact; ``ledger``: kind -> facts."""
    lines: list[str] = []
    for kind in LEDGER_WORDS:
        lines += _lines_of_kind(kind, ledger.get(kind, ()))
    return lines


def _lines_of_kind(kind: str, facts: Iterable[Mapping[str, Any]]) -> list[str]:
    lines = []
    for fact in facts:
        who = fact.get("title") or f"{fact['cell']} ({'; '.join(fact['titles'])})"
        more = {"too_wide": f": {fact.get('cells')}", "expired": f" on {fact.get('until')}"}.get(
            kind, ""
        )
        lines.append(f"{who} {LEDGER_WORDS[kind]}{more}")
    return lines


def _rest(facts: list[Any], console: Console) -> None:
    if len(facts) > MAX_LISTED:
        console.print(Text(f"  ... and {len(facts) - MAX_LISTED} more, see summary.json"))


def rows_of(plan: Plan, by_cell: Mapping[str, Result]) -> tuple[set[str], set[str]]:
    """Return the artifacts with observations, and those of them that get a row of the table."""
    observed = [
        (plan.by_id[cell], result)
        for cell, result in by_cell.items()
        if cell in plan.by_id and result.outcome.observable
    ]
    seen = {cell.artifact_id for cell, _ in observed}
    failed = {
        cell.artifact_id
        for cell, result in observed
        if result.outcome is not Outcome.PASS or result.expected is False
    }
    return seen, seen if len(seen) <= MAX_ROWS else failed


def matrix_tables(
    plan: Plan, by_cell: Mapping[str, Result], told: set[str], width: int
) -> Iterator[Table]:
    """Yield tables with a row per artifact of ``told``. Columns: the production, and each consumer
    with the outcomes of its checks.

    There are several tables if a line of ``width`` characters has no room for all consumers.
    """
    fields: dict[str, dict[_Consumer, list[Cell]]] = {}
    asked: dict[_Consumer, None] = {}
    for cell in plan:
        if cell.artifact_id not in told:
            continue
        key = (cell.consumer, cell.consumer_version)
        fields.setdefault(cell.artifact_id, {}).setdefault(key, []).append(cell)
        if not cell.is_production and _was_asked(by_cell.get(cell.id)):
            asked[key] = None
    names = (
        sum(max(map(len, column)) + PADDING for column in ([*fields, "artifact"], ["committed"]))
        + 1
    )
    columns: dict[_Consumer, tuple[int, int]] = {}
    room = width - names
    for key in asked:
        least, most = _column(key, fields, by_cell)
        if columns and least + PADDING > room:
            yield _table(columns, room, fields, by_cell)
            columns, room = {}, width - names
        columns[key] = (least, most)
        room -= least + PADDING
    yield _table(columns, room, fields, by_cell)  # also if there are only productions


def _column(
    key: _Consumer,
    fields: Mapping[str, Mapping[_Consumer, list[Cell]]],
    by_cell: Mapping[str, Result],
) -> tuple[int, int]:
    """Return the least width of a consumer's column, which breaks no word of it, and the width that
    breaks no line.
    """
    texts = [field_text(cells.get(key, []), by_cell).plain for cells in fields.values()]
    lines = list(itertools.chain.from_iterable(map(str.splitlines, texts)))
    words = [word for word in " ".join(lines).split() if "," not in word]
    least = max(MIN_COLUMN, *map(len, key), *map(len, words))
    return least, max(least, *map(len, lines), 0)


def _was_asked(result: Result | None) -> bool:
    return (
        result is None
        or result.outcome.observable
        or (result.outcome is Outcome.NOT_RUN and result.message != DESELECTED)
    )


def _table(
    columns: Mapping[_Consumer, tuple[int, int]],
    room: int,
    fields: Mapping[str, Mapping[_Consumer, list[Cell]]],
    by_cell: Mapping[str, Result],
) -> Table:
    """Return a table whose columns have their least width, and of ``room`` more characters what
    they can use.
    """
    table = Table(Column("artifact", no_wrap=True, overflow="fold"), "made", header_style="bold")
    for (name, version), (least, most) in columns.items():
        more = max(0, min(room, most - least))
        room -= more
        table.add_column(f"{name}\n{version}", width=least + more)
    for artifact, by_consumer in fields.items():
        cells = itertools.chain.from_iterable(by_consumer.values())
        made = [cell for cell in cells if cell.is_production]
        field = field_text(made, by_cell) if made else Text("committed", style="dim")
        table.add_row(
            artifact, field, *(field_text(by_consumer.get(key, []), by_cell) for key in columns)
        )
    return table


def field_text(cells: list[Cell], by_cell: Mapping[str, Result]) -> Text:
    """Describe the outcomes of the checks of one artifact and one consumer; failures first, with
    the checks' names.
    """
    unexpected: dict[str, list[str]] = {}
    known: Counter[str] = Counter()
    for cell in cells:
        result = by_cell.get(cell.id)
        if result and result.expected is False:
            unexpected.setdefault(str(result.outcome), []).append(cell.check)
        else:
            known[str(result.outcome if result else Outcome.NOT_RUN)] += 1
    parts = [
        Text(f"{outcome} {','.join(checks)}", style="bold red")
        for outcome, checks in unexpected.items()
    ]
    for outcome in Outcome:
        count = known[str(outcome)]
        if count and outcome is Outcome.PASS:
            parts.append(Text(f"pass {count}", style="green"))
        elif count and outcome.gate_failure:
            parts.append(Text(f"known {outcome} {count}", style="yellow"))
        elif count and (
            outcome is Outcome.NOT_RUN or len(known) == 1
        ):  # n/a only if there is no other outcome
            parts.append(
                Text(f"not run {count}" if outcome is Outcome.NOT_RUN else "n/a", style="dim")
            )
    return Text("\n").join(parts)


def _counts(summary: Mapping[str, Any], console: Console) -> None:
    planned, observed = summary["planned"], summary["observed"]
    console.print(
        f"planned {planned}, observed {observed}, not run {len(summary['not_run'])}",
        highlight=False,
    )
    console.print(
        f"not applicable {summary['not_applicable']} of {summary['cells']} cells", highlight=False
    )
    for outcome, count in summary["by_outcome"].items():
        if count and Outcome(outcome).observable:
            console.print(f"  {outcome:<14} {count} of {observed} observed", highlight=False)
    foretold = summary["predictions"]
    if any(foretold.values()):
        words = ", ".join(f"{foretold[name]} {words}" for name, words in FORETOLD.items())
        console.print(f"  predictions of the op history: {words}", highlight=False)
    if summary["compared"]:
        known = sum(item["expected"] for item in summary["disagreements"])
        agree = summary["compared"] - len(summary["disagreements"])
        console.print(
            f"  the C API and the C++ loader agree in {agree} of {summary['compared']} cells,"
            f" {known} known otherwise",
            highlight=False,
        )
    for item in summary["divisions"][:DIVISIONS]:
        where = f"{item['artifact']}/{item['consumer']}, {item['request']}"
        console.print(Text(one_line(f"  {where}: {item['words']}", 400)), soft_wrap=True)
    if len(summary["divisions"]) > DIVISIONS:
        console.print(f"  ... {len(summary['divisions']) - DIVISIONS} more are in summary.json")
    if summary.get("not_carried"):
        text = (
            f"  {summary['not_carried']} requests that JSON cannot carry were not asked over REST"
            " (details.not_carried says why)"
        )
        console.print(text, highlight=False)
    if not summary["ended"]:
        console.print(Text(f"  {not_sealed()}", style="yellow"))
    for reason, count in Counter(item["reason"] for item in summary["not_run"]).most_common(8):
        # Not wrapped: it may end in a command to copy.
        console.print(
            Text(f"  NOT_RUN        {count}: {one_line(reason, 400)}", style="yellow"),
            soft_wrap=True,
        )
    for runtime, checks in summary.get("left_out", {}).items():
        console.print(
            f"  not asked of {runtime}: {', '.join(checks)} (--all-checks)", highlight=False
        )
    for one in summary.get("not_asked", ()):
        line = f"  named, and not asked: {one_line(named.words([one]), 400)}"
        console.print(Text(line, style="bold red"), soft_wrap=True)
    waiting = len(summary["ledger"]["listed_not_run"])
    if waiting:
        console.print(
            f"  {waiting} expectation entries have cells that did not run", highlight=False
        )
