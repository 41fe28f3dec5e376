"""FloorDiv: the quotient rounded towards minus infinity; integers refuse 0.

Dtypes: numbers.
Accuracy: exact for integers; 1 ulp for floats.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("FloorDiv")
def floor_div(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return np.floor(x / y)
    if x.size and np.any(y == 0):
        raise ZeroDivisionError("Integer division by zero")
    return np.floor_divide(x, y)
