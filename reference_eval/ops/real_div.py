"""RealDiv, Div, TruncateDiv: the quotient; that of integers, and TruncateDiv, is without fraction.

Dtypes: numbers.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("RealDiv", "Div")
def real_div(x: Array, y: Array) -> Array:
    return quotient_of_integers(x, y) if x.dtype.kind in "iu" else x / y


@op("TruncateDiv")
def truncate_div(x: Array, y: Array) -> Array:
    return quotient_of_integers(x, y) if x.dtype.kind in "iu" else np.trunc(x / y)


def quotient_of_integers(x: Array, y: Array) -> Array:
    """Return quotients without their fractions. Raises ZeroDivisionError."""
    if x.size and np.any(y == 0):
        raise ZeroDivisionError("Integer division by zero")
    floor, rest = np.floor_divide(x, y), np.remainder(x, y)
    inexact = (rest != 0) & ((x < 0) != (y < 0))
    return (floor + inexact.astype(x.dtype)).astype(x.dtype)
