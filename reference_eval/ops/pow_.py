"""Pow: x to the power of y; integers refuse a negative exponent.

Dtypes: numbers.
Accuracy: 2 ulp in float32; exact for integers.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Pow")
def pow_(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu" and np.any(y < 0):
        raise ValueError("Integers to negative integer powers are not allowed")
    return np.power(x, y)
