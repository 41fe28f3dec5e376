"""One self-contained HTML page from the files of a run: a pure function, equal results give equal bytes.

The first screen says what is unexpected and what blocks; then the matrix, cases by consumers; then every cell with its evidence.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jinja2

from compat_matrix.outcomes import Outcome

# Shown per matrix field when its cells disagree: the first of these that occurs.
_WORST_FIRST = (
    Outcome.SETUP_ERROR,
    Outcome.ENV_ERROR,
    Outcome.CRASH,
    Outcome.TIMEOUT,
    Outcome.LOAD_ERROR,
    Outcome.CALL_ERROR,
    Outcome.FAIL_VALUE,
    Outcome.FAIL_SIGNATURE,
    Outcome.FAIL_STRUCTURE,
    Outcome.REJECTED,
    Outcome.NOT_RUN,
    Outcome.PASS,
    Outcome.NOT_APPLICABLE,
)
_LONG_TEXT = 4000  # characters of one evidence text; the whole is in the evidence folder

Record = Mapping[str, Any]


def render(plan: Record, results: Iterable[Record], summary: Record) -> str:
    """The page for a run.

    Args:
      plan: content of ``plan.json``.
      results: records of ``results.jsonl``; planned cells without one are shown as NOT_RUN.
      summary: content of ``summary.json``.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("compat_matrix.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = plain
    environment.filters["evidence"] = evidence_text
    by_cell = {result["cell"]: result for result in results}
    not_run = {entry["cell"]: entry["reason"] for entry in summary["not_run"]}
    cells = [_cell(cell, by_cell.get(cell["id"]), not_run) for cell in plan["cells"]]
    return environment.get_template("report.html.j2").render(
        summary=summary,
        plan=plan,
        consumers=sorted({cell["consumer_label"] for cell in cells if cell["consumer"] != "-"}),
        rows=_rows(cells),
        # A discrepancy without a cell of its own (a dead or expired entry) stands in the ledger list.
        unexpected=[cell for cell in cells if not cell["expected"] and cell["outcome"] != Outcome.NOT_RUN],
        known=[cell for cell in cells if cell["known"]],
        ledger=[(kind, items) for kind, items in sorted(summary["ledger"].items()) if items],
        not_run=_grouped_by_reason(cells),
        counts=[(outcome.value, summary["by_outcome"].get(outcome.value, 0)) for outcome in reversed(_WORST_FIRST)],
        versions=sorted({(cell["consumer_label"], version) for cell in cells for version in cell["versions"]}),
    )


def _cell(cell: Record, result: Record | None, not_run: Mapping[str, str]) -> dict[str, Any]:
    if result is None:
        result = {"outcome": Outcome.NOT_RUN.value, "message": not_run.get(cell["id"], "planned, no result"), "expected": True}
    outcome = result["outcome"]
    return {
        **{key: cell[key] for key in ("id", "case", "producer", "producer_version", "consumer", "check")},
        "anchor": "cell-" + "".join(c if c.isalnum() else "-" for c in cell["id"]),
        "consumer_label": f"{cell['consumer']} {cell['consumer_version']}".strip(),
        "outcome": outcome,
        "expected": bool(result.get("expected", True)),
        "known": bool(result.get("expected", True)) and Outcome(outcome).gate_failure,
        "error_class": result.get("error_class") or "",
        "message": result.get("message") or "",
        "reason": result.get("expected_reason") or "",
        "details": [
            (key, value) for key, value in sorted((result.get("details") or {}).items()) if value not in (None, "", [], {})
        ],
        "evidence": sorted((result.get("evidence") or {}).items()),
        "seconds": sum((result.get("timings") or {}).values()),
        "replay": result.get("replay") or "",
        "versions": ["; ".join(f"{name} {version}" for name, version in sorted((result.get("versions") or {}).items()))],
    }


def _rows(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per artifact, in plan order; one field per consumer, with the cells behind it."""
    grouped: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        grouped[cell["case"], cell["producer"], cell["producer_version"]].append(cell)
    rows = []
    for (case, producer, version), members in grouped.items():
        fields: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for cell in members:
            fields[cell["consumer_label"]].append(cell)
        rows.append(
            {
                "case": case,
                "producer": f"{producer} {version}",
                "anchor": f"row-{case}-{producer}-{version}",
                "fields": {label: _field(group) for label, group in fields.items()},
                "cells": members,
                "state": "unexpected"
                if any(not cell["expected"] for cell in members)
                else "known"
                if any(cell["known"] for cell in members)
                else "ok",
            }
        )
    return rows


def _field(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Text and colour of one matrix field: never colour alone, never a mean."""
    worst = min(cells, key=lambda cell: (cell["expected"], _WORST_FIRST.index(Outcome(cell["outcome"]))))
    asked = [cell for cell in cells if cell["outcome"] != Outcome.NOT_APPLICABLE.value]
    passed = sum(cell["outcome"] == Outcome.PASS.value for cell in asked)
    return {
        "outcome": worst["outcome"],
        "state": "unexpected" if not worst["expected"] else "known" if worst["known"] else worst["outcome"].lower(),
        "passed": passed,
        "asked": len(asked),
        "checks": [cell["check"] for cell in asked if cell["outcome"] == worst["outcome"]] if passed < len(asked) else [],
    }


def _grouped_by_reason(cells: Sequence[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    grouped: dict[str, list[str]] = defaultdict(list)
    for cell in cells:
        if cell["outcome"] == Outcome.NOT_RUN.value:
            grouped[cell["message"]].append(cell["id"])
    return sorted(grouped.items())


def plain(text: object) -> str:
    """Text of untrusted origin: invisible characters (terminal escapes, direction overrides) become visible ones."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in str(text))


def evidence_text(value: object) -> str:
    """A detail of a result as text: strings as they are, the rest as JSON; cut with a note when long."""
    text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    if len(text) > _LONG_TEXT:
        text = text[:_LONG_TEXT] + f"\n… {len(text) - _LONG_TEXT} more characters"
    return plain(text)
