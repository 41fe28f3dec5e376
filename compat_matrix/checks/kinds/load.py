"""``load``: every MetaGraph with requests loads; all MetaGraphs if there are no requests."""

from __future__ import annotations

from typing import Any

from compat_matrix.checks import oracle
from compat_matrix.checks.context import Context
from compat_matrix.checks.kind import Check

CHECK = Check(
    "load",
    "every MetaGraph that has requests loads; the artifact is what its provenance says",
    place=1,
)


def check(context: Context) -> dict[str, Any]:
    """Check all tag sets; return details of a pass."""
    tag_sets = oracle.tag_sets(context.artifact)
    for tags in tag_sets:
        with context.model(tags):
            pass
    return {"tag_sets": [list(tags) for tags in tag_sets]}
