"""NoOp and ControlTrigger: nothing; they order other nodes.

Dtypes: none.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.registry import op


@op("NoOp", "ControlTrigger")
def no_op() -> list[Any]:
    return []
