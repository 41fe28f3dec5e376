"""Identity, Snapshot, StopGradient, ... : the input itself.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.registry import op


@op(
    "Identity",
    "Snapshot",
    "StopGradient",
    "PreventGradient",
    "PlaceholderWithDefault",
    "CheckNumerics",
    "RefIdentity",
)
def identity(value: Any) -> Any:
    return value
