"""Min: the smallest value over axes; the highest value of the dtype for no elements.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, axes_of, highest
from reference_eval.registry import op


@op("Min")
def min_(value: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    most = highest(value.dtype)
    return value.min(axis=axes_of(axes, value), keepdims=keep_dims, initial=most)
