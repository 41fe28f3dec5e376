"""StridedSlice, StridedSliceGrad: Python's slicing, given as masks, and its gradient.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


class Masks(NamedTuple):
    """Bit sets over the places of a specification: which places mean something special."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink_axis: int


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
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return value[key_of(begin, end, strides, masks)]


@op("StridedSliceGrad")
def strided_slice_grad(
    shape: Array,
    begin: Array,
    end: Array,
    strides: Array,
    dy: Array,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Array:
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    out = np.zeros(check_shape(shape, dy.itemsize), dy.dtype)
    out[key_of(begin, end, strides, masks)] = dy
    return out


def key_of(begin: Array, end: Array, strides: Array, masks: Masks) -> tuple[Any, ...]:
    """Return the index of NumPy that means the same as a specification."""
    key: list[Any] = []
    for place, (start, stop, step) in enumerate(
        zip(begin.tolist(), end.tolist(), strides.tolist())
    ):
        bit = 1 << place
        if masks.ellipsis & bit:
            key.append(...)
        elif masks.new_axis & bit:
            key.append(None)
        elif masks.shrink_axis & bit:
            key.append(start)
        else:
            first = None if masks.begin & bit else start
            last = None if masks.end & bit else stop
            key.append(slice(first, last, step))
    if not any(part is ... for part in key):
        key.append(...)  # so that the result is an array, even of one string
    return tuple(key)
