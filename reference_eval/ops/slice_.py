"""Slice: a part of each axis from begin; size -1 takes the rest.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Slice")
def slice_(value: Array, begin: Array, size: Array) -> Array:
    key = []
    for start, length, there in zip(begin.tolist(), size.tolist(), value.shape):
        stop = there if length == -1 else start + length
        if not 0 <= start <= stop <= there:
            raise ValueError(f"begin {start} and size {length} do not fit an axis of {there}")
        key.append(slice(start, stop))
    return value[tuple(key)]
