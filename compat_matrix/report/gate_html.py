"""``gate.html``: the verdict of a gate as one self-contained page.

Pure: equal verdicts give equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat_matrix.report.gate_words import (
    EXIT_WORDS,
    KIND_WORDS,
    ROLE_WORDS,
    bisect_command,
    dated,
    headline,
    label,
    tone,
    total_counts,
)
from compat_matrix.report.html import environment
from savedmodel_common.exit_codes import ExitCode

TAGS = {"bad": "unexpected", "good": "pass", "odd": "known"}  # classes of the style sheet


def render(verdict: Mapping[str, Any]) -> str:
    """Return the page.

    ``verdict`` is the content of ``gate.json``; its text is untrusted and is escaped.
    """
    totals = total_counts(verdict)
    blocking = [cause for cause in verdict["causes"] if cause["blocks"]]
    others = [cause for cause in verdict["causes"] if not cause["blocks"]]
    return (
        environment()
        .get_template("gate.html.j2")
        .render(
            verdict=verdict,
            date=dated("", verdict),
            headline=headline(verdict),
            exit_words=EXIT_WORDS[ExitCode(verdict["exit_code"])],
            kinds=[kind for kind in KIND_WORDS if totals[kind]],
            kind_words=KIND_WORDS,
            role_words=ROLE_WORDS,
            label=label,
            tag=lambda fact: TAGS[tone(fact)],
            bisect=lambda cause: bisect_command(verdict, cause),
            lists=[("What blocks", "blocking", blocking), ("What else changed", "others", others)],
        )
    )
