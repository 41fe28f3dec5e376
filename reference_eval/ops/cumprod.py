"""Cumprod: running products along an axis.

Dtypes: numbers.
Accuracy: exact order: each partial product is rounded.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.ops.cumsum import running
from reference_eval.registry import op


@op("Cumprod")
def cumprod(x: Array, axis: Array, *, exclusive: bool = False, reverse: bool = False) -> Array:
    return running(np.cumprod, 1, x, int(axis), exclusive, reverse)
