"""``values``: the answers are those the producer recorded."""

from __future__ import annotations

from typing import Any

from compat_matrix.checks.answers import Answers, ask_all, raise_first
from compat_matrix.checks.context import Context


def check(context: Context) -> dict[str, Any]:
    """All tag sets. Returns details of a pass: a digest of each answer, and which are kept as evidence.

    ``answers``: request -> digest, of all outputs. ``inexact``: request -> name of the evidence with the answer, of those that
    pass by their tolerance only; the other answers are those of the artifact. A failure's details have ``answers`` too.
    """
    findings, answers = [], Answers()
    for tags in context.artifact.tag_sets:
        with context.model(tags) as model:
            findings += ask_all(context, model, tags, answers)
    if findings:
        findings[0].details["answers"] = answers.digests
    raise_first(findings)
    details: dict[str, Any] = {"answers": answers.digests}
    if answers.inexact:
        names = {request: f"answer-{index}" for index, request in enumerate(answers.inexact)}
        context.kept.update({names[request]: path for request, path in answers.inexact.items()})
        details["inexact"] = names
    return details
