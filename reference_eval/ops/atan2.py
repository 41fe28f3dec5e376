"""Atan2: the angle of the point (x, y).

Dtypes: floats.
Accuracy: 4 ulp in float32.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Atan2")
def atan2(y: Array, x: Array) -> Array:
    return np.arctan2(y, x)
