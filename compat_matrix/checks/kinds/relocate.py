"""``relocate``: the model answers as before after it was moved to another place."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from compat_matrix.checks.answers import ask_all, raise_first
from compat_matrix.checks.context import Context
from compat_matrix.checks.kind import Check

CHECK = Check(
    "relocate",
    "the same answers from a copy of the directory after the original is gone",
    place=4,
    asks=True,
    copies=True,
)


def check(context: Context) -> dict[str, Any]:
    """Check all tag sets; return details of a pass."""
    moved = moved_copy(context.artifact.model, context.scratch)
    findings = []
    for tags in context.artifact.tag_sets:
        with context.model(tags, moved) as model:
            findings += ask_all(context, model, tags)
    raise_first(findings)
    return {}


def moved_copy(model: Path, scratch: Path) -> Path:
    """Copy a model, then move the copy, so that its first path does not exist any more.

    The new path contains a space.
    """
    first, moved = scratch / "copied" / "model", scratch / "moved to" / "model"
    shutil.copytree(model, first)
    moved.parent.mkdir()
    first.rename(moved)
    return moved
