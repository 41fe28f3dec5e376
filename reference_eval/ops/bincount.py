"""Bincount, DenseBincount: counts of integers, or sums of their weights.

Dtypes: int32, int64.
Accuracy: exact for counts.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("Bincount")
def bincount(values: Array, size: Array, weights: Array) -> Array:
    return counted(values.ravel(), int(size), weights.ravel())


@op("DenseBincount")
def dense_bincount(
    values: Array, size: Array, weights: Array, *, binary_output: bool = False
) -> Array:
    rows = values.reshape(1, -1) if values.ndim < 2 else values
    given = weights.reshape(rows.shape) if weights.size else [weights] * len(rows)
    counts = np.stack([counted(row, int(size), part) for row, part in zip(rows, given)])
    if binary_output:
        counts = (counts != 0).astype(counts.dtype)
    return counts[0] if values.ndim < 2 else counts


def counted(values: Array, size: int, weights: Array) -> Array:
    """Return the counts of one row; values of `size` and above are left out."""
    if np.any(values < 0):
        raise ValueError("Input arr must be non-negative!")
    out = np.zeros(check_shape([size], weights.itemsize), weights.dtype)
    inside = values < size
    ones = np.ones(values.shape, weights.dtype)
    np.add.at(out, values[inside], (weights if weights.size else ones)[inside])
    return out
