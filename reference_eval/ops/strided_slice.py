"""StridedSlice: Python's slicing, given as masks.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("StridedSlice")
def strided_slice(
    value: Array,
    begin: Array,
    end: Array,
    strides: Array,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Array:
    key: list[Any] = []
    for place, (start, stop, step) in enumerate(
        zip(begin.tolist(), end.tolist(), strides.tolist())
    ):
        bit = 1 << place
        if ellipsis_mask & bit:
            key.append(...)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(start)
        else:
            first = None if begin_mask & bit else start
            last = None if end_mask & bit else stop
            key.append(slice(first, last, step))
    if not any(part is ... for part in key):
        key.append(...)  # so that the result is an array, even of one string
    return value[tuple(key)]
