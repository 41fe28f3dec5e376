"""Switch: the input as one of two results. `reference_eval.frames` drops the other one.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Switch", "RefSwitch")
def switch(value: Any, takes_true: Array) -> tuple[Any, Any]:
    return value, value
