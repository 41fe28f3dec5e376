"""FloorMod: the remainder with the sign of y; integers refuse 0.

Dtypes: numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("FloorMod")
def floor_mod(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu" and x.size and np.any(y == 0):
        raise ZeroDivisionError("Integer division by zero")
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)
