"""Consumers that are one loader in two programs must agree. Pure functions over a plan and its results.

The C API and the C++ API of a TensorFlow run the same code, so that cells that differ in nothing but this consumer have the same
outcome, the same error class and, bit for bit, the same answers. Whether they do is a cell of its own, made here and not planned:
its consumer is ``c_api+cpp``, its outcome PASS or DISAGREE, its error class what differs (``outcome``, ``error_class`` or
``answers``). The ledger may expect it like any other failure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import BOTH, Cell, Plan
from compat_matrix.cells.results import Result
from compat_matrix.verdict import prediction
from compat_matrix.verdict.prediction import Cause, Says

PAIRS = (("c_api", "cpp"),)
OUTCOME, ERROR_CLASS, ANSWERS = "outcome", "error_class", "answers"  # what can differ
HARNESS = (Outcome.SETUP_ERROR, Outcome.ENV_ERROR)
_LISTED = 5  # requests named in a message


def extended(plan: Plan) -> Plan:
    """``plan`` and behind it a cell for each two that must agree: those that the plan leaves to the run."""
    return replace(plan, cells=(*plan.cells, *(cell for cell, _, _ in _pairs(plan))))


def compared(plan: Plan, results: Mapping[str, Result]) -> dict[str, Result]:
    """The results of the cells that :func:`extended` adds, by id; none where one of the two has no result yet."""
    out = {}
    for cell, *sides in _pairs(plan):
        found = [results.get(side.id) for side in sides]
        if found[0] is not None and found[1] is not None:
            out[cell.id] = _compare(plan.plan_id, cell, sides, (found[0], found[1]))
    return out


def disagreements(compared: Mapping[str, Result], unexpected: Collection[str]) -> list[dict[str, Any]]:
    """The pairs that disagree, for ``summary.json``. ``unexpected``: cells the ledger does not expect to."""
    return [
        {
            "cell": cell,
            "differs": result.error_class,
            "message": result.message,
            "expected": cell not in unexpected,
            "sides": result.details["sides"],
        }
        for cell, result in compared.items()
        if result.outcome is Outcome.DISAGREE
    ]


def _pairs(plan: Plan) -> list[tuple[Cell, Cell, Cell]]:
    """``(agreement, one, other)`` for all cells that differ in nothing but their consumer, and both apply."""
    out = []
    partner = dict(PAIRS)
    for one in plan:
        other_name = partner.get(one.consumer)
        other = other_name and plan.by_id.get(replace(one, consumer=other_name).id)
        if not other or _not_applicable(one) or _not_applicable(other):
            continue
        both = replace(one, consumer=one.consumer + BOTH + other.consumer, decided=None)
        out.append((both, one, other))
    return out


def _not_applicable(cell: Cell) -> bool:
    return cell.decided is not None and cell.decided.outcome is Outcome.NOT_APPLICABLE


def _compare(plan_id: str, both: Cell, sides: list[Cell], found: tuple[Result, Result]) -> Result:
    one, other = found
    for result in found:
        if result.outcome is Outcome.NOT_RUN or result.outcome in HARNESS:
            reason = result.message if result.outcome is Outcome.NOT_RUN else f"{result.cell} is {result.outcome}"
            return Result.not_executed(plan_id, both.id, Outcome.NOT_RUN, reason)
    differs, message = _difference(one, other, [side.consumer for side in sides])
    outcome = Outcome.DISAGREE if differs else Outcome.PASS
    details: dict[str, Any] = {"sides": {side.consumer: _facts(result) for side, result in zip(sides, found)}} if differs else {}
    if differs and _foretold(found):
        details[prediction.KEY] = prediction.Prediction(Says.FAILS, (Cause(prediction.OTHER_LOADER),)).to_json()
    return Result(plan_id, both.id, outcome, error_class=differs, message=message, message_normalised=message, details=details)


def _foretold(found: tuple[Result, Result]) -> bool:
    """Whether the op history says different things of the two, and is right about one that fails."""
    each = [prediction.of(result) for result in found]
    return each[0] != each[1] and any(prediction.predicted(result) for result in found)


def _facts(result: Result) -> dict[str, Any]:
    return {"cell": result.cell, "outcome": str(result.outcome), "error_class": result.error_class}


def _difference(one: Result, other: Result, names: list[str]) -> tuple[str | None, str]:
    """What differs, and a sentence that says how; None and nothing for two that agree."""
    if one.outcome is not other.outcome:
        words = [" ".join(filter(None, (str(result.outcome), result.error_class))) for result in (one, other)]
        return OUTCOME, "; ".join(f"{name}: {what}" for name, what in zip(names, words))
    if one.error_class != other.error_class:
        return ERROR_CLASS, "; ".join(f"{name}: {result.error_class}" for name, result in zip(names, (one, other)))
    said = [result.details.get("answers") or {} for result in (one, other)]
    asked = sorted(set(said[0]) | set(said[1]))
    different = [request for request in asked if said[0].get(request) != said[1].get(request)]
    if not different:
        return None, ""
    more = f" and {len(different) - _LISTED} more" if len(different) > _LISTED else ""
    return ANSWERS, f"{' and '.join(names)} answer otherwise to {', '.join(different[:_LISTED])}{more}"
