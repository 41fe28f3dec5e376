"""Tanh: the hyperbolic tangent.

Dtypes: floats, complex.
Accuracy: 4 ulp in float32: Eigen approximates by a rational function.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Tanh")
def tanh(x: Array) -> Array:
    return np.tanh(x)
