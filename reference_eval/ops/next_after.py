"""NextAfter: the next number from x towards y.

Dtypes: float32, float64.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("NextAfter")
def next_after(x: Array, y: Array) -> Array:
    return np.nextafter(x, y)
