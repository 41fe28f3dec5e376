"""EuclideanNorm: the square root of the sum of squares over axes.

Dtypes: numbers.
Accuracy: sums in another order: about log2(n) ulp.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, axes_of
from reference_eval.registry import op


@op("EuclideanNorm")
def euclidean_norm(value: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    squares = value * np.conj(value)
    total = squares.sum(axis=axes_of(axes, value), keepdims=keep_dims, dtype=value.dtype)
    return np.sqrt(total).astype(value.dtype)
