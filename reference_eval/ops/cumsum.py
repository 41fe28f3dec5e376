"""Cumsum: running sums along an axis.

Dtypes: numbers.
Accuracy: exact order: each partial sum is rounded.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Cumsum")
def cumsum(x: Array, axis: Array, *, exclusive: bool = False, reverse: bool = False) -> Array:
    moved = np.moveaxis(x, int(axis), 0)
    moved = moved[::-1] if reverse else moved
    sums = np.cumsum(moved, axis=0, dtype=x.dtype)
    if exclusive and len(sums):
        sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])
    return np.moveaxis(sums[::-1] if reverse else sums, 0, int(axis))
