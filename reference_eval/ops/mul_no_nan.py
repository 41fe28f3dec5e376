"""MulNoNan: the product, 0 where y is 0 even if x is not finite.

Dtypes: floats, complex.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("MulNoNan")
def mul_no_nan(x: Array, y: Array) -> Array:
    return np.where(y == 0, np.zeros((), x.dtype), x * y)
