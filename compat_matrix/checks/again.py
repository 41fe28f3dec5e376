"""Ask a loaded model again: a request a second and a third time, and one from several threads at
once.

A loader may answer the first call rightly and a later one not, or only in the thread that loaded
the model. The answers to both are those that are recorded, so each is judged like the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compat_matrix.cells.consumers import THREADS, answerable
from compat_matrix.checks.answers import judged
from compat_matrix.checks.context import Context, Finding, finding_of
from compat_matrix.hosts.host import Loaded
from compat_matrix.requests.artifact import Artifact
from compat_matrix.runtimes.worker import ReplyError

TIMES = 3  # how often each signature and function is called at least
AT_ONCE = 4  # threads
# Bytes of the tensor files of a request that is asked again. Beyond that the files take longer than
# the call; no case that is about calls has any that are as large.
CHEAP = 1 << 18

Request = dict[str, Any]


def ask_again(context: Context, model: Loaded, tags: Sequence[str]) -> list[Finding]:
    """Ask each signature and function of a MetaGraph until it was asked :data:`TIMES` times, and
    the first from threads.

    It follows :func:`.answers.ask_all`. Nothing is asked of a stateful artifact, whose answers are
    recorded in one order only. What is not answered ends the questions about its target. Raises
    WorkerDied.
    """
    if context.artifact.stateful:
        return []
    findings = []
    for number, (request, asked) in enumerate(_targets(context, tags)):
        try:
            found = _repeated(context, model, request, asked)
            if not found and number == 0 and THREADS in context.consumer.capabilities:
                found = _in_threads(context, model, request)
        except ReplyError as error:
            found = finding_of(error, f"request {request['id']}, asked again")
            found.details["request"] = request["id"]
        findings += [found] if found else []
    return findings


def _targets(context: Context, tags: Sequence[str]) -> list[tuple[Request, int]]:
    """Return a request for each signature and function that one can afford to ask again, and how
    often its target was asked.
    """
    asked: dict[tuple[str, str], list[Request]] = {}
    for request in context.artifact.requests:
        if tuple(request["tags"]) == tuple(tags) and answerable(
            request["kind"], context.consumer.capabilities
        ):
            name = request["signature"] if request["kind"] == "signature" else request["path"]
            asked.setdefault((request["kind"], name), []).append(request)
    chosen = []
    for requests in asked.values():
        cheap = next((one for one in requests if _is_cheap(context.artifact, one)), None)
        if cheap is not None:
            chosen.append((cheap, len(requests)))
    return chosen


def _is_cheap(artifact: Artifact, request: Request) -> bool:
    if request["outputs"] is None:
        return False
    size: int = sum((artifact.io / request[side]).stat().st_size for side in ("inputs", "outputs"))
    return size <= CHEAP


def _repeated(context: Context, model: Loaded, request: Request, asked: int) -> Finding | None:
    for time in range(asked + 1, TIMES + 1):
        answer = context.scratch / f"again-{time}.npz"
        reply = context.ask(
            model, "call", request=request, io_dir=str(context.artifact.io), outputs=str(answer)
        )
        finding = _judged(context, request, answer, reply.get("structure"), f"in call {time} of it")
        if finding:
            return finding
    return None


def _in_threads(context: Context, model: Loaded, request: Request) -> Finding | None:
    files = [context.scratch / f"thread-{number}.npz" for number in range(1, AT_ONCE + 1)]
    fields = {
        "request": request,
        "io_dir": str(context.artifact.io),
        "outputs": list(map(str, files)),
    }
    structures = context.ask(model, "call_in_threads", **fields)["structures"]
    for number, (file, structure) in enumerate(zip(files, structures), 1):
        finding = _judged(
            context, request, file, structure, f"in thread {number} of {AT_ONCE} at once"
        )
        if finding:
            return finding
    return None


def _judged(
    context: Context, request: Request, answer: Path, structure: Any, how: str
) -> Finding | None:
    finding = judged(context.artifact, request, answer, structure, tolerance=context.tolerance)
    if finding:
        finding.args = (f"{finding}; {how}",)
    elif answer.exists():
        answer.unlink()
    return finding
