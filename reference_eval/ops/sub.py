"""Sub: the difference with broadcasting. Integers wrap around.

Dtypes: numbers.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Sub")
def sub(x: Array, y: Array) -> Array:
    return x - y
