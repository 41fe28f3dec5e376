"""RealDiv, Div: the quotient; Div of integers truncates towards 0 and refuses 0.

Dtypes: numbers.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("RealDiv", "Div", "TruncateDiv")
def real_div(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return x / y
    if x.size and np.any(y == 0):
        raise ZeroDivisionError("Integer division by zero")
    floor, rest = np.floor_divide(x, y), np.remainder(x, y)
    inexact = (rest != 0) & ((x < 0) != (y < 0))
    return (floor + inexact.astype(x.dtype)).astype(x.dtype)
