"""AddN: the sum of tensors of one shape, from left to right.

Dtypes: numbers.
Accuracy: exact up to 8 tensors in order.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("AddN", "AccumulateNV2")
def add_n(inputs: list[Array]) -> Array:
    total = inputs[0]
    for value in inputs[1:]:
        total = total + value
    return total
