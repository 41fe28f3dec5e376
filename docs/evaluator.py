"""The page `evidence/evaluator.md`: each op of the evaluator and each artifact, with the distance
from TensorFlow, from `data/evaluator.json` (`docs.evaluator_measured`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from packaging.version import Version

from docs.markdown import table
from reference_eval import registry

FEW = 10  # ulp
RECORD = Path(__file__).parent / "data" / "evaluator.json"
HEAD = """# The evaluator, measured

[`reference_eval`](../format/evaluator.md) answers signatures with NumPy, without TensorFlow. `python -m docs.evaluator_measured RUN_FOLDER`
compared it with TensorFlow {tensorflow}, on the fixtures and on the artifacts of a `matrix run`, and its ops with the kernels of
{older}, too. A distance is in ulp (units of the last place). A distance above 10 ulp is followed by the absolute distance in brackets:
near 0 a distance of many ulp is small.

"""  # noqa: E501
ARTIFACTS = """## Artifacts

{summary} Each line is an artifact; its answers are compared with the recorded ones.

"""
OPS = """
## Ops

{summary} A result is compared with that of TensorFlow's kernel for the same inputs: those of the nodes in the artifacts, and for ops of one
or two numbers also random ones, NaN, infinities and -0.0. `differs` is a distance that no number states, such as NaN in place of infinity;
the file of the op gives the reason. `measured` has the distance from TensorFlow {tensorflow}, `releases` those whose kernels the op was held
against. An op without an entry in these columns works on state or calls functions, or TensorFlow cannot run it alone.

"""  # noqa: E501
APART = """
## Releases that differ

The distance of these ops depends on the release, so two TensorFlows differ from each other.

"""
# Why the kernels of two releases differ. A difference without a reason turns a test red.
REASONS = {
    ("Erf", "float64"): "Since 2.20 the kernel gives NaN for infinities ([finding 13]"
    "(findings.md#13-since-220-the-error-function-of-infinity-is-nan-in-double-precision)).",
    ("Erfc", "float32"): "Between 2.18 and 2.21 a vector kernel replaced the C library.",
    ("Erfc", "float64"): "Between 2.18 and 2.21 a vector kernel replaced the C library.",
    ("Round", "int32"): "Since 2.17 the kernel gives 0 for every integer ([finding 12]"
    "(findings.md#12-since-217-the-raw-op-round-gives-0-for-every-integer)).",
    ("Round", "int64"): "As for int32.",
    (
        "Sigmoid",
        "complex64",
    ): "Where the formula overflows, the kernel does not give the same in each run.",
}


def page() -> str:
    """Return the page."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    ops, artifacts = registry.known(), record["artifacts"]
    older = ", ".join(sorted(record["older"], key=Version))
    total, evaluated = counts(artifacts)
    share = f"{evaluated} of {total} signatures ({evaluated / total:.0%}) are evaluated."
    measured = f"{len(ops)} ops, {len(record['ops'].keys() & ops.keys())} of them compared."
    return (
        HEAD.format(tensorflow=record["tensorflow"], older=older)
        + ARTIFACTS.format(summary=share)
        + table(
            ("artifact", "signatures", "evaluated", "worst", "not evaluated"), map(row, artifacts)
        )
        + OPS.format(summary=measured, tensorflow=record["tensorflow"])
        + table(
            ("op", "stated", "measured", "releases"), [op_row(name, record) for name in sorted(ops)]
        )
        + APART
        + table(("op", "dtype", "distances", "reason"), map(difference_row, differences(record)))
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


def op_row(name: str, record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the line of an op."""
    module = sys.modules[registry.known()[name].evaluate.__module__]
    by_distance: dict[str, list[str]] = {}
    for dtype, (ulp, absolute) in sorted(record["ops"].get(name, {}).items()):
        by_distance.setdefault(told(ulp, absolute), []).append(dtype)
    found = [f"{', '.join(dtypes)}: {distance}" for distance, dtypes in by_distance.items()]
    file = Path(module.__file__ or "").name
    held = [release for release, ops in by_release(record).items() if name in ops]
    return (
        f"[`{name}`](../../reference_eval/ops/{file})",
        accuracy(module.__doc__ or ""),
        "; ".join(found),
        ", ".join(held),
    )


def by_release(record: Mapping[str, Any]) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Return the distances of the ops from each release, from the oldest one on: release -> op ->
    dtype -> ulp and absolute distance.
    """
    measured = {**record["older"], record["tensorflow"]: record["ops"]}
    return {release: measured[release] for release in sorted(measured, key=Version)}


class Difference(NamedTuple):
    """An op whose distance depends on the release; `distances` by release, in words."""

    op: str
    dtype: str
    distances: dict[str, str]


def differences(record: Mapping[str, Any]) -> list[Difference]:
    """Return the ops and dtypes whose distance depends on the release."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for release, ops in by_release(record).items():
        for op, dtypes in ops.items():
            for dtype, distance in dtypes.items():
                found.setdefault((op, dtype), {})[release] = distance
    out = []
    for key, distances in sorted(found.items()):
        if _apart([ulp for ulp, _ in distances.values()]):
            words = {release: told(*distance) for release, distance in distances.items()}
            out.append(Difference(*key, words))
    return out


def _apart(distances: Sequence[Optional[float]]) -> bool:
    """Return whether distances in ulp differ by more than the samples do.

    None stands for `differs`.
    """
    numbers = [distance for distance in distances if distance is not None]
    if len(numbers) < len(distances):
        return bool(numbers)
    return max(numbers) > 4 * min(numbers) + FEW


def difference_row(found: Difference) -> tuple[str, ...]:
    """Return the line of an op whose distance depends on the release."""
    distances = "; ".join(f"{release}: {words}" for release, words in found.distances.items())
    return f"`{found.op}`", found.dtype, distances, REASONS[found.op, found.dtype]


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
