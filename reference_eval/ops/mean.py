"""Mean: the mean over axes; integers truncate towards 0.

Dtypes: numbers.
Accuracy: sums in another order, as Sum; NaN for no elements.
"""

from __future__ import annotations

import math

import numpy as np

from reference_eval.arrays import Array, axes_of
from reference_eval.registry import op


@op("Mean")
def mean(value: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    over = axes_of(axes, value)
    total = value.sum(axis=over, keepdims=keep_dims, dtype=value.dtype)
    count = math.prod([value.shape[axis] for axis in over])
    if value.dtype.kind in "iu":
        return np.trunc(total / count).astype(value.dtype)
    return np.asarray(total / np.asarray(count).astype(value.dtype), value.dtype)
