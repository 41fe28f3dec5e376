"""Max: the largest value over axes; the lowest value of the dtype for no elements.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, axes_of, lowest
from reference_eval.registry import op


@op("Max")
def max_(value: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    least = lowest(value.dtype)
    return value.max(axis=axes_of(axes, value), keepdims=keep_dims, initial=least)
