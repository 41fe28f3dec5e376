"""Sign: -1, 0 or 1; for a complex number x / |x|, or 0. NaN stays NaN.

Dtypes: numbers.
Accuracy: exact for real numbers, 3 ulp for complex ones.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Sign")
def sign(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)  # np.sign of NumPy 1 is the sign of the real part
    return np.divide(x, size, out=np.zeros_like(x), where=size != 0)
