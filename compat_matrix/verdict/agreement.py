"""The agreement of two consumers that use the same loader.

Pure functions of a cell of a plan and two results.

The C API and the C++ API of a TensorFlow run the same code. Cells that differ only in this consumer
must therefore have the same outcome, the same error class and, bit for bit, the same answers. A
cell of the plan checks this: its consumer is ``c_api+cpp``, its outcome PASS or DISAGREE, its error
class the part that differs (``outcome``, ``error_class`` or ``answers``). The ledger may expect a
DISAGREE like any other failure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import Observation, Result
from compat_matrix.verdict import prediction
from compat_matrix.verdict.prediction import Cause, Says
from reference_impl.errors import listed

OUTCOME, ERROR_CLASS, ANSWERS = "outcome", "error_class", "answers"  # what can differ
NO_RESULT = "has no result"
_LISTED = 5  # requests named in a message


def observe(cell: Cell, results: Mapping[str, Result]) -> Observation | str:
    """Return an observation of the agreement of the two consumers of a cell, or the reason why
    there is none.
    """
    found = []
    for side in cell.sides:
        result = results.get(side.id)
        if result is None:
            return f"{side.id} {NO_RESULT}"
        if result.outcome is Outcome.NOT_RUN:
            return result.message
        if result.outcome.harness_failure or result.outcome is Outcome.UNSTABLE:
            return f"{side.id} is {result.outcome}"
        found.append(result)
    differs, message = _difference(found[0], found[1], [side.consumer for side in cell.sides])
    if not differs:
        return Observation(Outcome.PASS)
    details: dict[str, Any] = {
        "sides": {side.consumer: _facts(result) for side, result in zip(cell.sides, found)}
    }
    if _foretold(found):
        details[prediction.KEY] = prediction.Prediction(
            Says.FAILS, (Cause(prediction.OTHER_LOADER),)
        ).to_json()
    return Observation(Outcome.DISAGREE, error_class=differs, message=message, details=details)


def disagreements(
    plan: Plan, results: Mapping[str, Result], unexpected: Collection[str]
) -> list[dict[str, Any]]:
    """Return the disagreements of two consumers, for ``summary.json``.

    ``unexpected``: those that the ledger does not expect.
    """
    found = ((cell, results[cell.id]) for cell in plan if cell.sides and cell.id in results)
    return [
        {
            "cell": cell.id,
            "differs": result.error_class,
            "message": result.message,
            "expected": cell.id not in unexpected,
            "sides": result.details["sides"],
        }
        for cell, result in found
        if result.outcome is Outcome.DISAGREE
    ]


def _foretold(found: Collection[Result]) -> bool:
    """Return whether the op history predicts different results for the two, and is right about one
    that fails.
    """
    one, other = (prediction.of(result) for result in found)
    return one != other and any(prediction.predicted(result) for result in found)


def _facts(result: Result) -> dict[str, Any]:
    return {"cell": result.cell, "outcome": str(result.outcome), "error_class": result.error_class}


def _difference(one: Result, other: Result, names: list[str]) -> tuple[str | None, str]:
    """Return the part that differs, and a sentence about it; None and "" if the two agree."""
    if one.outcome is not other.outcome:
        words = [
            " ".join(filter(None, (str(result.outcome), result.error_class)))
            for result in (one, other)
        ]
        return OUTCOME, "; ".join(f"{name}: {what}" for name, what in zip(names, words))
    if one.error_class != other.error_class:
        return ERROR_CLASS, "; ".join(
            f"{name}: {result.error_class}" for name, result in zip(names, (one, other))
        )
    said = [result.details.get("answers") or {} for result in (one, other)]
    asked = sorted(set(said[0]) | set(said[1]))
    different = [request for request in asked if said[0].get(request) != said[1].get(request)]
    if not different:
        return None, ""
    return ANSWERS, f"{' and '.join(names)} answer otherwise to {listed(different, _LISTED)}"
