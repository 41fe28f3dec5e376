"""Pad, PadV2: adds a constant before and after each axis.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("Pad")
def pad(value: Array, paddings: Array) -> Array:
    return padded(value, paddings, np.zeros((), value.dtype))


@op("PadV2")
def pad_v2(value: Array, paddings: Array, constant: Array) -> Array:
    return padded(value, paddings, constant)


def padded(value: Array, paddings: Array, constant: Array) -> Array:
    """Return a tensor between constants."""
    check_shape(np.add(value.shape, paddings.sum(axis=1)), value.itemsize)
    return np.pad(value, paddings.tolist(), constant_values=constant.item())
