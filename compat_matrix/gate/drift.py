"""The drift between two passing answers: the first diverging output, its element, both values, the
error in ulp.

A passing answer equals the recorded one of its artifact, or it was kept as evidence
(docs/releases/results.md).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.gate.pairs import Pair, Side
from compat_matrix.requests.artifact import Artifact, ArtifactError, read_artifact
from compat_matrix.requests.digest import digest_of, named_outputs
from savedmodel_common import tensors
from savedmodel_common.compare import EXACT, Mismatch, compare_named

MAX_REQUESTS = 5  # of one cell, in the report

Drift = dict[str, Any]


def drifts(pair: Pair) -> list[Drift]:
    """Return the differences between the answers of a pair that passes on both sides, by request;
    empty if they are equal.

    Each is ``{"request", "output", "index", "baseline", "candidate", "ulp", "absolute",
    "differing", "elements", "within", "message"}``; ``within``: within the baseline artifact's
    tolerance. A difference that cannot be measured, since the artifacts were deleted, is not within
    it.
    """
    one, other = pair.baseline, pair.candidate
    if one is None or other is None or one.result is None or other.result is None:
        return []
    if one.result.outcome is not Outcome.PASS or other.result.outcome is not Outcome.PASS:
        return []
    left, right = (side.result.details.get("answers") or {} for side in (one, other) if side.result)
    out = []
    for request in dict.fromkeys([*left, *right]):
        if request not in left or request not in right:
            who = "candidate" if request in left else "baseline"
            out.append(_drift(request, message=f"the {who} was not asked this request"))
        elif left[request] != right[request]:
            out.append(_measured(request, one, other))
    return out


def _drift(request: str, **facts: Any) -> Drift:
    empty = dict.fromkeys(
        ("output", "index", "baseline", "candidate", "ulp", "absolute", "differing", "elements")
    )
    return {"request": request, **empty, "within": False, "message": "", **facts}


def _measured(request: str, one: Side, other: Side) -> Drift:
    try:
        artifacts = [read_artifact(side.cell.artifact_dir(side.run.out)) for side in (one, other)]
        left, right = (
            _answer(side, artifact, request) for side, artifact in zip((one, other), artifacts)
        )
    except (ArtifactError, OSError, KeyError, ValueError) as error:
        return _drift(request, message=f"cannot be measured: {type(error).__name__}: {error}")
    exact = compare_named(left[1], right[1], EXACT)
    if left[0] != right[0] or not exact:
        return _drift(request, message="the structure of the result differs")
    order = {name: number for number, name in enumerate(left[1])}
    first = min(exact, key=lambda difference: order.get(difference.where, -1))
    within = not compare_named(left[1], right[1], artifacts[0].tolerance)
    facts = first.details
    return _drift(
        request,
        output=first.where or None,
        index=facts.get("index"),
        baseline=facts.get("expected"),
        candidate=facts.get("got"),
        ulp=facts.get("max_ulp_error"),
        absolute=facts.get("max_abs_error"),
        differing=facts.get("differing"),
        elements=facts.get("elements"),
        within=within,
        message=_words(first) + (f", and {len(exact) - 1} more outputs" if len(exact) > 1 else ""),
    )


def _words(difference: Mismatch) -> str:
    facts = difference.details
    if difference.kind != "value":
        return str(difference)
    at = f"element {facts['index']}" if facts["index"] else "the scalar"
    parts = [f"{facts['differing']} of {facts['elements']} differ"]
    if "max_ulp_error" in facts:
        parts.append(f"by at most {facts['max_ulp_error']:g} ulp")
    elif "max_abs_error" in facts:
        parts.append(f"by at most {facts['max_abs_error']:g}")
    return (
        f"{difference.where}: {at} is {facts['got']}, was {facts['expected']} ({' '.join(parts)})"
    )


def _answer(side: Side, artifact: Artifact, name: str) -> tuple[str, dict[str, tensors.Tensor]]:
    """Read the answer to a request: its structure without tensors, as text, and its tensors by
    output or path.
    """
    assert side.result is not None
    request = next((entry for entry in artifact.requests if entry["id"] == name), None)
    if request is None or request["outputs"] is None:
        raise KeyError(f"{artifact.io} has no recorded answer to {name}")
    recorded = dict(tensors.load(artifact.io / request["outputs"]))
    skeleton, named = named_outputs(request, request.get("structure"), recorded)
    kept = side.result.details.get("inexact", {}).get(name)
    if kept is not None:
        named = dict(tensors.load(_inside(side.run.out, side.result.evidence[kept])))
    if digest_of(skeleton, named) != side.result.details["answers"][name]:
        raise ArtifactError(
            f"{side.run.out}: what is kept of the answer to {name} is not what was answered: it was"
            " changed since"
        )
    return json.dumps(skeleton, sort_keys=True), named


def _inside(out: Path, relative: str) -> Path:
    """Return a file of a result folder.

    The folder is untrusted, so the path must not lead out of it.
    """
    path = (out / relative).resolve()
    if not path.is_relative_to(out.resolve()):
        raise ValueError(f"{relative} is not inside the folder")
    return path
