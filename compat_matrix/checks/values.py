"""``values``: the answers are those the producer recorded."""

from __future__ import annotations

from typing import Any

from compat_matrix.checks.answers import ask_all, raise_first
from compat_matrix.checks.context import Context


def check(context: Context) -> dict[str, Any]:
    """All tag sets. Returns details of a pass."""
    findings = []
    for tags in context.artifact.tag_sets:
        with context.model(tags) as model:
            findings += ask_all(context, model, tags)
    raise_first(findings)
    return {}
