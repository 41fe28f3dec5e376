"""Sum: the sum over axes, none for an empty list of axes.

Dtypes: numbers.
Accuracy: sums in another order: about log2(n) ulp of the sum of magnitudes.
"""

from __future__ import annotations

from reference_eval.arrays import Array, axes_of
from reference_eval.registry import op


@op("Sum")
def sum_(value: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    return value.sum(axis=axes_of(axes, value), keepdims=keep_dims, dtype=value.dtype)
