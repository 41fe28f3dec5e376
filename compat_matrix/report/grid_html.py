"""The page of a run over many runtimes: version tables, unexpected cells, and the causes of known
failures. A pure function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compat_matrix.cells.plan import Plan
from compat_matrix.cells.results import Result
from compat_matrix.report import grid, html
from compat_matrix.verdict import tally

SHOWN_UNEXPECTED = 200  # causes, each with all details of one cell; the others are counted
SHOWN_CELLS = 50  # ids under an entry
JUMPS = (
    ("unexpected", "Unexpected"),
    ("made", "Written"),
    ("tables", "Read"),
    ("known", "Known failures"),
    ("versions", "Versions"),
)


def render(
    plan: Plan,
    results: Iterable[Result],
    summary: Mapping[str, Any],
    expectations: Mapping[int, Mapping[str, Any]],
    log_tails: Mapping[str, Mapping[str, str]],
) -> str:
    """Return the page.

    The arguments are those of :func:`compat_matrix.report.html.render`, as objects.
    """
    by_cell = {result.cell: result for result in results}
    facts = tally.tally(plan, by_cell)
    unexpected = [
        result for cell in plan if (result := by_cell.get(cell.id)) and result.expected is False
    ]
    causes = html.by_cause(
        _unexpected(result, log_tails.get(result.cell, {})) for result in unexpected
    )
    known = (
        (cell, by_cell[cell.id])
        for cell in plan
        if cell.id in by_cell and by_cell[cell.id].expected
    )
    made = []
    for producer, found in facts["made"].items():
        made += [(producer, version, counts) for version, counts in found.items()]
    return (
        html.environment()
        .get_template("grid.html.j2")
        .render(
            **html.overview(summary, JUMPS),
            heading="What each TensorFlow writes, read by each TensorFlow",
            title=html.title_of_run("grid", summary),
            unexpected=[
                (cells[0], cells[:SHOWN_CELLS], max(0, len(cells) - SHOWN_CELLS))
                for cells in causes[:SHOWN_UNEXPECTED]
            ],
            odd=len(unexpected),
            unexpected_more=max(0, len(causes) - SHOWN_UNEXPECTED),
            known_count=sum(
                result.outcome.gate_failure and result.expected is True
                for result in by_cell.values()
            ),
            made=made,
            unexpected_state=tally.UNEXPECTED,
            states=(tally.PASSED, tally.KNOWN, tally.UNEXPECTED, tally.NOT_RUN),
            tables=[
                {**_table(table), "anchor": f"table-{number}"}
                for number, table in enumerate(tally.tables(facts))
            ],
            known=[
                _entry(expectations.get(index, {}), by_cell, cells)
                for index, cells in tally.by_entry(known)
            ],
        )
    )


def _unexpected(result: Result, tails: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": result.cell,
        "outcome": result.outcome.value,
        "error_class": result.error_class or "",
        "message": result.message,
        "said": result.message_normalised,
        **html.shown_details(result.details),
        "tails": sorted(tails.items()),
        "evidence": sorted(result.evidence.items()),
        "replay": result.replay,
    }


def _table(table: Mapping[str, Any]) -> dict[str, Any]:
    rows = [(writer, list(map(_words_and_state, fields))) for writer, fields in table["rows"]]
    return {**table, "readers": [grid.minor(reader) for reader in table["readers"]], "rows": rows}


def _words_and_state(field: Mapping[str, Any] | None) -> tuple[str, str]:
    return grid.field_words(field), _state(field)


def _state(field: Mapping[str, Any] | None) -> str:
    if field is None or field[tally.NOT_RUN]:
        return ""
    if field[tally.UNEXPECTED]:
        return "unexpected"
    return "pass" if field[tally.PASSED] == field["asked"] else "known"


def _entry(
    facts: Mapping[str, Any], by_cell: Mapping[str, Result], cells: list[str]
) -> dict[str, Any]:
    first = by_cell[cells[0]]
    return {
        "kind": facts.get("kind", ""),
        "reason": facts.get("reason", ""),
        "issue": facts.get("issue") or "",
        "message": f"{first.outcome} {first.error_class or ''}\n{first.message_normalised}",
        "cells": cells[:SHOWN_CELLS],
        "more": max(0, len(cells) - SHOWN_CELLS),
    }
