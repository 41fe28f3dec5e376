"""Expm1: e to the power of x, minus 1, without cancellation near 0.

Dtypes: floats, complex.
Accuracy: 4 ulp in float32.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Expm1")
def expm1(x: Array) -> Array:
    return np.expm1(x)
