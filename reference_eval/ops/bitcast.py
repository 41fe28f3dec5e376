"""Bitcast: the bytes of numbers as another type; a last axis takes the parts of a number.

Dtypes: numbers.
Accuracy: exact; refused with another precision, which has other bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op


@op("Bitcast")
def bitcast(x: Array, *, type: np.dtype[Any], call: Call) -> Array:
    if call.precision is not None:
        raise ValueError("Bitcast needs the stored dtypes: load the model without `precision`")
    return viewed(np.array(x, order="C"), type)


def viewed(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return the bytes of a contiguous array as another type."""
    if x.itemsize == dtype.itemsize:
        return x.view(dtype)
    if x.itemsize > dtype.itemsize:
        return x[..., None].view(dtype)
    if x.ndim == 0 or x.shape[-1] * x.itemsize != dtype.itemsize:
        raise ValueError(f"Cannot bitcast from {x.dtype} to {dtype}: shape {list(x.shape)}")
    return x.view(dtype)[..., 0]
