"""Exp: e to the power of x.

Dtypes: floats, complex.
Accuracy: 2 ulp in float32: Eigen approximates by polynomials.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Exp")
def exp(x: Array) -> Array:
    return np.exp(x)
