"""The page `evidence/evaluator.md`: each op of the evaluator and each artifact, with the distance
from TensorFlow, from `data/evaluator.json` (`docs.evaluator_measured`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from docs.markdown import table
from reference_eval import registry

FEW = 10  # ulp
RECORD = Path(__file__).parent / "data" / "evaluator.json"
HEAD = """# The evaluator, measured

[`reference_eval`](../format/evaluator.md) answers signatures with NumPy, without TensorFlow. `python -m docs.evaluator_measured RUN_FOLDER`
compared it with TensorFlow {tensorflow}, on the fixtures and on the artifacts of a `matrix run`. A distance is in ulp (units of the
last place). A distance above 10 ulp is followed by the absolute distance in brackets: near 0 a distance of many ulp is small.

"""  # noqa: E501
ARTIFACTS = """## Artifacts

{summary} Each line is an artifact; its answers are compared with the recorded ones.

"""
OPS = """
## Ops

{summary} A result is compared with that of TensorFlow's kernel for the same inputs: those of the nodes in the artifacts, and for ops of one
or two numbers also random ones, NaN, infinities and -0.0. `differs` is a distance that no number states, such as NaN in place of infinity;
the file of the op gives the reason. An op without an entry in the last column works on state or calls functions, or TensorFlow cannot run
it alone.

"""  # noqa: E501


def page() -> str:
    """Return the page."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    ops, artifacts = registry.known(), record["artifacts"]
    total, evaluated = counts(artifacts)
    share = f"{evaluated} of {total} signatures ({evaluated / total:.0%}) are evaluated."
    measured = f"{len(ops)} ops, {len(record['ops'].keys() & ops.keys())} of them compared."
    return (
        HEAD.format(tensorflow=record["tensorflow"])
        + ARTIFACTS.format(summary=share)
        + table(
            ("artifact", "signatures", "evaluated", "worst", "not evaluated"), map(row, artifacts)
        )
        + OPS.format(summary=measured)
        + table(("op", "stated", "measured"), [op_row(name, record["ops"]) for name in sorted(ops)])
    )


def counts(artifacts: list[dict[str, Any]]) -> tuple[int, int]:
    """Return the number of signatures with a recorded answer, and of those that are evaluated."""
    total = evaluated = 0
    for artifact in artifacts:
        for signature in artifact["signatures"].values():
            total += 1
            evaluated += not signature["reason"]
    return total, evaluated


def row(artifact: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the line of an artifact."""
    signatures = artifact["signatures"].values()
    reasons = dict.fromkeys(one["reason"] for one in signatures if one["reason"])
    good = [one for one in signatures if not one["reason"]]
    worst = max(good, key=lambda one: one["ulp"], default=None)
    distance = "" if worst is None else told(worst["ulp"], worst["absolute"])
    return artifact["artifact"], str(len(signatures)), str(len(good)), distance, "; ".join(reasons)


def op_row(name: str, measured: Mapping[str, Mapping[str, list[float]]]) -> tuple[str, ...]:
    """Return the line of an op."""
    module = sys.modules[registry.known()[name].evaluate.__module__]
    by_distance: dict[str, list[str]] = {}
    for dtype, (ulp, absolute) in sorted(measured.get(name, {}).items()):
        by_distance.setdefault(told(ulp, absolute), []).append(dtype)
    found = [f"{', '.join(dtypes)}: {distance}" for distance, dtypes in by_distance.items()]
    file = Path(module.__file__ or "").name
    return (
        f"[`{name}`](../../reference_eval/ops/{file})",
        accuracy(module.__doc__ or ""),
        "; ".join(found),
    )


def accuracy(docstring: str) -> str:
    """Return the accuracy that a module states: its first sentence."""
    text = " ".join(docstring.partition("\nAccuracy: ")[2].partition("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".")


def told(ulp: Optional[float], absolute: float) -> str:
    """Return a distance in words, e.g. ``2 ulp``; a large one with the absolute distance."""
    if ulp is None:
        return "differs"
    if ulp == 0:
        return "equal"
    return f"{ulp:,.0f} ulp" if ulp <= FEW else f"{ulp:,.0f} ulp ({absolute:.1e})"
