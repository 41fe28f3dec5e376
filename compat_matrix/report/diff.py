"""Two runs compared: what regressed, what was repaired, what is no longer looked at. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from compat_matrix.outcomes import Outcome
from compat_matrix.plan import Cell, Plan
from compat_matrix.results import Result

KINDS = ("regressed", "vanished", "fixed", "still_failing", "newly_covered")


Facts = dict[str, list[dict[str, Any]]]


def compare(plan_a: Plan, results_a: Iterable[Result], plan_b: Plan, results_b: Iterable[Result]) -> Facts:
    """Facts by kind. A cell is the same cell in both runs when its names are: versions are what a release changes.

    ``regressed``: passed in A, fails in B, whatever the ledgers expect. ``vanished``: observed in A, not in B.
    """
    loose = _unambiguous(plan_a) and _unambiguous(plan_b)
    a, b = _observed(plan_a, results_a, loose), _observed(plan_b, results_b, loose)
    out: Facts = {kind: [] for kind in KINDS}
    for key in dict.fromkeys([*a, *b]):
        kind = _kind(a.get(key), b.get(key))
        if kind:
            out[kind].append({"cell": key, "a": _fact(a.get(key)), "b": _fact(b.get(key))})
    return out


def _key(cell: Cell, loose: bool) -> str:
    return f"{cell.case}/{cell.producer}/{cell.consumer}/{cell.check}" if loose else cell.id


def _unambiguous(plan: Plan) -> bool:
    return max(Counter(_key(cell, True) for cell in plan).values(), default=0) <= 1


def _observed(plan: Plan, results: Iterable[Result], loose: bool) -> Mapping[str, Result]:
    cells = plan.by_id
    return {_key(cells[r.cell], loose): r for r in results if r.cell in cells and r.outcome.observable}


def _kind(a: Result | None, b: Result | None) -> str | None:
    if b is None:
        return "vanished"
    if a is None:
        return "newly_covered"
    if b.outcome is Outcome.PASS:
        return None if a.outcome is Outcome.PASS else "fixed"
    return "regressed" if a.outcome is Outcome.PASS else "still_failing"


def _fact(result: Result | None) -> dict[str, Any] | None:
    if result is None:
        return None
    message = result.message_normalised[:300]
    return {"cell": result.cell, "outcome": str(result.outcome), "error_class": result.error_class, "message": message}
