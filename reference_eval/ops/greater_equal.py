"""GreaterEqual: x >= y.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("GreaterEqual")
def greater_equal(x: Array, y: Array) -> Array:
    return x >= y
