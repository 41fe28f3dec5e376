"""Erfc: one minus the error function, without cancellation.

Dtypes: floats.
Accuracy: 1 ulp in float32, computed in double precision. The kernel of TensorFlow 2.21 is up to 65
ulp away.
"""

from __future__ import annotations

import math

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Erfc")
def erfc(x: Array) -> Array:
    flat = [math.erfc(value) for value in x.astype(np.float64).ravel().tolist()]
    return np.asarray(flat, np.float64).reshape(x.shape).astype(x.dtype)
