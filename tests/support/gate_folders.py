"""Synthetic result folders for tests of the gate: cells with any outcome, artifacts with any
answers. Needs no TensorFlow.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Decision, Plan
from compat_matrix.cells.results import Observation, Result
from compat_matrix.gate.pairs import Run
from compat_matrix.requests.digest import answer_digest
from savedmodel_common import tensors

OLD, NEW = "2.20.0", "2.21.0"
SIDES = ({"label": OLD, "spec": f"tensorflow=={OLD}"}, {"label": NEW, "spec": f"tensorflow=={NEW}"})
REQUEST = {
    "id": "r",
    "kind": "signature",
    "tags": ["serve"],
    "signature": "s",
    "inputs": "in.npz",
    "outputs": "out.npz",
}


def cell(
    case="c", written=OLD, read=OLD, check="values", producer="tf2", consumer="tf2", decided=None
) -> Cell:
    """A cell; ``read`` None: the production."""
    artifact = f"artifacts/{case}/{producer}@{written}"
    reader, consumer, check = (read, consumer, check) if read else ("", "-", "produce")
    decided = decided and Decision(Outcome.NOT_APPLICABLE, decided)
    return Cell(
        case, producer, written, consumer, reader, check, "local", artifact, decided=decided
    )


def run(out: Path, *what: tuple[Any, ...]) -> Run:
    """A run of ``(cell, outcome, fields of the observation)``. Outcome None: no result; NOT_RUN
    with the reason for fields; RULED_OUT: by the plan."""
    ruled_out = Decision(Outcome.NOT_APPLICABLE, "ruled out")
    what = tuple(
        (replace(item[0], decided=ruled_out), *item[1:]) if item[1] == "RULED_OUT" else item
        for item in what
    )
    plan = Plan(tuple(item[0] for item in what))
    results = []
    for one, outcome, *more in what:
        if one.decided or outcome == "NOT_RUN":
            reason = one.decided.reason if one.decided else more[0]
            outcome = one.decided.outcome if one.decided else Outcome.NOT_RUN
            results.append(Result.not_executed(plan.plan_id, one.id, outcome, reason))
        elif outcome is not None:
            seen = (
                Outcome.CRASH if outcome == Outcome.UNSTABLE else outcome
            )  # no single execution is UNSTABLE
            result = Result.observed(
                plan.plan_id, one.id, Observation(seen, **(more[0] if more else {}))
            )
            result.outcome = Outcome(outcome)
            result.expected = result.outcome is Outcome.PASS
            results.append(result)
    return Run.of(out, plan, results)


def answered(
    out: Path, one: Cell, recorded: Any, answer: Any = None, rtol: float = 0.0
) -> dict[str, Any]:
    """Write the artifact of a cell, with ``recorded`` for its answer; the observation of a cell
    that gives ``answer``.
    """
    io = one.artifact_dir(out) / "io"
    io.mkdir(parents=True, exist_ok=True)
    (io / "io.json").write_text(
        json.dumps(
            {
                "schema": 1,
                "stateful": False,
                "tolerance": {"rtol": rtol, "atol": 0},
                "requests": [REQUEST],
            }
        )
    )
    tensors.save(io / "out.npz", named(recorded))
    said = named(recorded if answer is None else answer)
    details: dict[str, Any] = {"answers": {"r": answer_digest(REQUEST, None, said)}}
    if answer is None:
        return {"details": details}
    kept = f"evidence/{one.id}/answer-0.npz"
    (out / kept).parent.mkdir(parents=True)
    tensors.save(out / kept, said)
    return {"details": {**details, "inexact": {"r": "answer-0"}}, "evidence": {"answer-0": kept}}


def named(value: Any) -> dict[str, tensors.Tensor]:
    values = value if isinstance(value, dict) else {"y": value}
    return {name: tensors.from_numpy(np.asarray(item)) for name, item in values.items()}
