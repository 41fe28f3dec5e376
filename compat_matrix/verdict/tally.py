"""The version grid: the artifacts that each TensorFlow wrote, and how many of their cells each
TensorFlow can read.

Pure functions of plan and results. A field counts cells, never artifacts. Nothing is averaged; a
cell without a result is counted as not run.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.version import InvalidVersion, Version

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import DESELECTED, Result

SCHEMA = 1
# The counts of a field, in the order of display.
PASSED, KNOWN, UNEXPECTED, NOT_RUN = "passed", "known", "unexpected", "not_run"


def tally(plan: Plan, results: Mapping[str, Result]) -> dict[str, Any]:
    """``{"schema", "made": {producer: {version: counts}}, "read": {producer: {version: {consumer:
    {version: counts}}}}}``.

    ``counts`` has the members ``passed``, ``known``, ``unexpected`` and ``not_run`` as far as they
    are not 0. Cells that do not apply, that compare two others, or that were not selected are not
    counted; a field without applicable cells is absent.
    """
    made: dict[str, Any] = {}
    read: dict[str, Any] = {}
    for cell in plan:
        state = _state(results.get(cell.id))
        if (
            state is None
            or cell.sides
            or (cell.decided and cell.decided.outcome is Outcome.NOT_APPLICABLE)
        ):
            continue
        if cell.is_production:
            counts = made.setdefault(cell.producer, {}).setdefault(cell.producer_version, Counter())
        else:
            writer = read.setdefault(cell.producer, {}).setdefault(cell.producer_version, {})
            counts = writer.setdefault(cell.consumer, {}).setdefault(
                cell.consumer_version, Counter()
            )
        counts[state] += 1
    return {"schema": SCHEMA, "made": _sorted(made), "read": _sorted(read)}


def record(
    plan: Plan,
    results: Iterable[Result],
    summary: Mapping[str, Any],
    expectations: Mapping[int, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return ``grid.json``: the tally, facts about the run, and the number of failures that each
    reason explains.
    """
    by_cell = {result.cell: result for result in results}
    cells = [
        (cell, by_cell[cell.id])
        for cell in plan
        if cell.id in by_cell and by_cell[cell.id].expected
    ]
    reasons: dict[tuple[str, str], int] = Counter()
    for index, ids in by_entry(cells):
        entry = expectations.get(index, {})
        reasons[str(entry.get("kind", "")), str(entry.get("reason", ""))] += len(ids)
    run = summary["run"]
    return {
        **tally(plan, by_cell),
        "cases": sorted({cell.case for cell in plan}),
        "run": {
            key: summary[key]
            for key in (
                "planned",
                "observed",
                "not_applicable",
                "by_outcome",
                "exit_code",
                "predictions",
            )
        }
        | {
            key: run.get(key)
            for key in ("seconds", "processes", "revision", "tool_version", "started")
        },
        "reasons": [
            {"kind": kind, "reason": reason, "cells": n}
            for (kind, reason), n in Counter(reasons).most_common()
        ],
    }


def _state(result: Result | None) -> str | None:
    if result is None:
        return NOT_RUN
    if result.outcome is Outcome.NOT_RUN:
        return None if result.message == DESELECTED else NOT_RUN
    if result.outcome is Outcome.NOT_APPLICABLE:
        return None
    if result.expected is False:
        return UNEXPECTED
    return PASSED if result.outcome is Outcome.PASS else KNOWN


def _sorted(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _sorted(value)
        if isinstance(value, dict) and not isinstance(value, Counter)
        else dict(sorted(value.items()))
        for key, value in sorted(table.items(), key=lambda item: release_order(item[0]))
    }


def release_order(text: str) -> tuple[Any, ...]:
    """Return a sort key: other names first, then versions by release."""
    try:
        return (1, Version(text), "")
    except InvalidVersion:
        return (0, Version("0"), text)


def tables(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a table for each producer and consumer: ``{"producer", "consumer", "readers":
    [versions], "rows": [(writer, fields)]}``.

    A field is ``{"passed", "asked", ...}`` or None if nothing was asked.
    """
    out = []
    for producer, writers in facts["read"].items():
        for consumer in dict.fromkeys(itertools.chain.from_iterable(writers.values())):
            by_writer = {
                writer: by_consumer[consumer]
                for writer, by_consumer in writers.items()
                if by_consumer.get(consumer)
            }
            readers = sorted(
                set(itertools.chain.from_iterable(by_writer.values())), key=release_order
            )
            rows = []
            for writer, found in by_writer.items():
                rows.append((writer, [_field(found.get(reader)) for reader in readers]))
            out.append(
                {"producer": producer, "consumer": consumer, "readers": readers, "rows": rows}
            )
    return out


def _field(counts: Mapping[str, int] | None) -> dict[str, Any] | None:
    if counts is None:
        return None
    asked = sum(counts.values())
    return {
        "asked": asked,
        PASSED: counts.get(PASSED, 0),
        UNEXPECTED: counts.get(UNEXPECTED, 0),
        NOT_RUN: counts.get(NOT_RUN, 0),
    }


def by_entry(cells: Iterable[tuple[Cell, Result]]) -> list[tuple[int, list[str]]]:
    """Return ledger entry -> ids of the cells that it explains, the entry with most cells first."""
    grouped: dict[int, list[str]] = {}
    for cell, result in cells:
        if result.expectation is not None:
            grouped.setdefault(result.expectation, []).append(cell.id)
    return sorted(grouped.items(), key=lambda item: (-len(item[1]), item[0]))
