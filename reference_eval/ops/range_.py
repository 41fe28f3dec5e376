"""Range: from start to below limit in steps of delta.

Dtypes: real numbers.
Accuracy: exact for integers; start + i * delta for floats.
"""

from __future__ import annotations

import math

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("Range")
def range_(start: Array, limit: Array, delta: Array) -> Array:
    if delta == 0:
        raise ValueError("Requires delta != 0")
    wide = np.float64 if start.dtype.kind not in "iu" else object
    first, last, step = (np.asarray(value, wide).item() for value in (start, limit, delta))
    count = math.ceil((last - first) / step) if wide is np.float64 else -((first - last) // step)
    count = max(0, count)
    check_shape([count], start.itemsize)
    return (start + np.arange(count).astype(start.dtype) * delta).astype(start.dtype)
