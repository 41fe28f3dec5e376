"""ZerosLike: zeros (empty strings) of the shape of a tensor.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ZerosLike")
def zeros_like(value: Array) -> Array:
    if value.dtype == np.dtype(object):
        return np.full(value.shape, b"", object)
    return np.zeros_like(value)
