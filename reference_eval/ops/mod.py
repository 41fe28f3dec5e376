"""Mod, TruncateMod: the remainder with the sign of x; integers refuse 0.

Dtypes: numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Mod", "TruncateMod")
def mod(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu" and x.size and np.any(y == 0):
        raise ZeroDivisionError("Integer division by zero")
    return np.fmod(x, y)
