"""Cumsum: running sums along an axis.

Dtypes: numbers.
Accuracy: exact order: each partial sum is rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Cumsum")
def cumsum(x: Array, axis: Array, *, exclusive: bool = False, reverse: bool = False) -> Array:
    return running(np.cumsum, 0, x, int(axis), exclusive, reverse)


def running(
    accumulate: Callable[..., Array],
    first: int,
    x: Array,
    axis: int,
    exclusive: bool,
    reverse: bool,
) -> Array:
    """Return running sums or products; an exclusive result starts with `first`."""
    moved = np.moveaxis(x, axis, 0)
    moved = moved[::-1] if reverse else moved
    found = accumulate(moved, axis=0, dtype=x.dtype)
    if exclusive and len(found):
        found = np.concatenate([np.full_like(found[:1], first), found[:-1]])
    return np.moveaxis(found[::-1] if reverse else found, 0, axis)
