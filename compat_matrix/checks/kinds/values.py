"""``values``: the answers are those the producer recorded, the third time and in other threads
too.
"""

from __future__ import annotations

from typing import Any

from compat_matrix.checks.again import ask_again
from compat_matrix.checks.answers import Answers, ask_all, raise_first
from compat_matrix.checks.context import Context, Finding, finding_of
from compat_matrix.checks.kind import Check
from compat_matrix.runtimes.worker import ReplyError

CHECK = Check("values", "the answers are those the producer recorded", place=3, asks=True)

_SHOWN = 2000  # characters of a message about one request


def check(context: Context) -> dict[str, Any]:
    """Check all tag sets; return details of a pass: a digest of each answer, and the answers kept
    as evidence.

    ``answers``: request -> digest of all outputs. ``inexact``: request -> name of the evidence with
    the answer, for answers that pass only by their tolerance; the others equal those of the
    artifact. The details of a failure also have ``answers``, and ``failed``: request -> outcome and
    message, for requests not answered as recorded. If a MetaGraph does not load, the others are
    asked all the same.
    """
    findings: list[Finding] = []
    answers = Answers()
    failed: dict[str, dict[str, str]] = {}
    for tags in context.artifact.tag_sets:
        try:
            with context.model(tags) as model:
                found = ask_all(context, model, tags, answers) or ask_again(context, model, tags)
                failed.update({str(one.details["request"]): _told(one) for one in found})
        except ReplyError as error:
            found = [finding_of(error)]
            asked = [
                str(request["id"])
                for request in context.artifact.requests
                if tuple(request["tags"]) == tags
            ]
            failed.update(dict.fromkeys(asked, _told(found[0])))
        findings += found
    if findings:
        findings[0].details |= {"answers": answers.digests, "failed": failed}
    raise_first(findings)
    return {"answers": answers.digests, **answers.evidence(context.kept)}


def _told(finding: Finding) -> dict[str, str]:
    return {"outcome": str(finding.outcome), "message": str(finding)[:_SHOWN]}
