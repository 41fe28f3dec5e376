"""Ask a loaded model the requests of an artifact and compare with the recorded answers, and with
the promise of the signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.cells.consumers import answerable
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.checks import oracle
from compat_matrix.checks.context import Context, Finding, finding_of
from compat_matrix.hosts.host import Loaded
from compat_matrix.requests.artifact import Artifact
from compat_matrix.requests.digest import answer_digest, compared_outputs, named_outputs
from compat_matrix.requests.promises import BrokenPromise, broken_promises
from compat_matrix.runtimes.worker import ReplyError
from reference_impl.errors import SavedModelError
from savedmodel_common import tensors
from savedmodel_common.compare import (
    Mismatch,
    Tolerance,
    compare_named,
    compare_nests,
)
from savedmodel_common.printable import first_of
from savedmodel_common.tensors import Tensor

# A name or a dtype is part of a signature; of a function's result it is part of the structure or
# the value.
_OUTCOMES = {
    "value": Outcome.FAIL_VALUE,
    "shape": Outcome.FAIL_VALUE,
    "structure": Outcome.FAIL_STRUCTURE,
}
MORE = 20  # further findings listed in the details


def raise_first(findings: Sequence[Finding]) -> None:
    """Raise the first finding, with the others named in its details; nothing when there are
    none.
    """
    if not findings:
        return
    first = findings[0]
    if len(findings) > 1:
        first.details["also"] = [
            f"{other.outcome}: {other}"[:300] for other in findings[1 : MORE + 1]
        ]
        first.details["findings"] = len(findings)
    raise first


@dataclass
class Answers:
    """The answers: request -> digest.

    ``inexact``: request -> file, for answers that are not bit-exact.
    """

    digests: dict[str, str] = field(default_factory=dict)
    inexact: dict[str, Path] = field(default_factory=dict)

    def evidence(self, kept: dict[str, Path]) -> dict[str, dict[str, str]]:
        """Add the answers that are not bit-exact to the evidence ``kept``; return the details that
        name them.
        """
        names = {request: f"answer-{index}" for index, request in enumerate(self.inexact)}
        kept.update({names[request]: path for request, path in self.inexact.items()})
        return {"inexact": names} if names else {}


def ask_all(
    context: Context, model: Loaded, tags: Sequence[str], answers: Answers | None = None
) -> list[Finding]:
    """Ask every request for ``tags`` that the consumer can answer, in order, and return the
    findings. ``answers`` collects the answers.

    After an error the next request is asked. Raises WorkerDied, after which nothing can be asked.
    """
    out = []
    for index, request in enumerate(context.artifact.requests):
        if tuple(request["tags"]) != tuple(tags) or not answerable(
            request["kind"], context.consumer.capabilities
        ):
            continue
        try:
            finding = _ask(context, model, request, index, answers)
        except ReplyError as error:
            finding = (
                None
                if refused_as_recorded(request, str(error))
                else finding_of(error, f"request {request['id']}")
            )
            if finding:
                finding.details["request"] = request["id"]
        if finding:
            out.append(finding)
    return out


def _ask(
    context: Context, model: Loaded, request: dict[str, Any], index: int, answers: Answers | None
) -> Finding | None:
    answer = context.scratch / f"answer-{index}.npz"
    reply = context.ask(
        model, "call", request=request, io_dir=str(context.artifact.io), outputs=str(answer)
    )
    return judged(
        context.artifact, request, answer, reply.get("structure"), answers, context.tolerance
    )


def refused_as_recorded(request: Mapping[str, Any], message: str) -> bool:
    """Return whether a request is one that must fail, and the error says why as that of the
    original does.
    """
    return "error" in request and request["error"] in message


def judged(
    artifact: Artifact,
    request: dict[str, Any],
    answer: Path,
    structure: Any = None,
    answers: Answers | None = None,
    tolerance: Tolerance | None = None,
) -> Finding | None:
    """Compare the answer to a request, in the file ``answer``, with the recorded one; return the
    findings.

    The answer of a signature must also have the names, dtypes and shapes that the model's
    SignatureDef promises: the recorded answer may break the promise like any other.

    ``structure`` is the nest of a function's result, ``tolerance`` the allowed difference (default:
    the artifact's). The file is removed unless it is evidence: of a failure, or of an answer that
    is not bit-exact.
    """
    got = compared_outputs(request, tensors.load(answer))
    if answers is not None:
        answers.digests[request["id"]] = answer_digest(request, structure, got)
    if request["outputs"] is None:
        due = (
            f"the original refuses it: {request['error']}"
            if "error" in request
            else "no answer is due"
        )
        said = f"request {request['id']}: answered, although {due}"
        return Finding(
            Outcome.FAIL_VALUE, said, details={"request": request["id"]}, files={"got": answer}
        )
    recorded = artifact.io / request["outputs"]
    stored = tensors.load(recorded)
    expected = compared_outputs(request, stored)
    uncompared = _uncompared(request, stored, expected)
    if uncompared:
        said = f"request {request['id']}: {uncompared}"
        return Finding(
            Outcome.FAIL_STRUCTURE, said, details={"request": request["id"]}, files={"got": answer}
        )
    tolerance = tolerance or artifact.tolerance
    if request["kind"] == "function":
        differences = compare_nests(request["structure"], structure, expected, got, tolerance)
        outcomes = {**_OUTCOMES, "dtype": Outcome.FAIL_VALUE}
    else:
        differences = compare_named(expected, got, tolerance)
        outcomes = {**_OUTCOMES, "dtype": Outcome.FAIL_SIGNATURE, "names": Outcome.FAIL_SIGNATURE}
        differences = differences or _broken_promises(artifact, request, got)
    if not differences:
        if answers is not None and answers.digests[request["id"]] != answer_digest(
            request, request.get("structure"), expected
        ):
            # By output, or by path in the result: so they can be compared with any other answer to
            # this request.
            tensors.save(answer, named_outputs(request, structure, got)[1])
            answers.inexact[request["id"]] = answer
        else:
            answer.unlink()
        return None
    return Finding(
        outcomes[differences[0].kind]
        if not isinstance(differences[0], BrokenPromise)
        else Outcome.FAIL_SIGNATURE,
        f"request {request['id']}: {first_of(differences, 'differences')}",
        details={
            "request": request["id"],
            "differences": [d.to_json() for d in differences[:MORE]],
        },
        files={"expected": recorded, "got": answer},
    )


def _uncompared(
    request: Mapping[str, Any],
    stored: Mapping[str, tensors.Tensor],
    expected: Mapping[str, tensors.Tensor],
) -> str:
    """Return why a request's ``compared`` would leave nothing to compare, or names what was not
    recorded; "" if it does not.
    """
    if request["kind"] != "signature" or request.get("compared") is None:
        return ""
    unknown = sorted(set(request["compared"]) - set(stored))
    if unknown:
        return f"`compared` names {', '.join(map(repr, unknown))}: no such answer is recorded"
    return (
        "`compared` names no output, so nothing of the answer would be compared"
        if stored and not expected
        else ""
    )


def _broken_promises(
    artifact: Artifact, request: dict[str, Any], got: Mapping[str, Tensor]
) -> list[Mismatch]:
    """Return in what an answer is not what the signature promises.

    The check ``signatures`` tells of one that is not there.
    """
    try:
        promised = oracle.promised_outputs(artifact.model, tuple(request["tags"])).get(
            request["signature"]
        )
    except (
        SavedModelError
    ):  # the check `signatures` tells of it; a consumer that reads the model is held to the answers
        return []
    return (
        []
        if promised is None
        else [*broken_promises(promised, got, whole=request.get("compared") is None)]
    )
