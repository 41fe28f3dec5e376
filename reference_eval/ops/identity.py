"""Identity, Snapshot, StopGradient, Enter, ... : the input itself. `reference_eval.frames` knows in
which iteration of a loop the result of Enter, NextIteration and Exit is.

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
    "Enter",
    "Exit",
    "LoopCond",
    "NextIteration",
    "RefEnter",
    "RefExit",
    "RefNextIteration",
)
def identity(value: Any) -> Any:
    return value
