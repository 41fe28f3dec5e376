"""Erf: the error function.

Dtypes: floats.
Accuracy: 4 ulp in float32, computed in double precision. The float64 kernel of TensorFlow 2.21
gives NaN for infinities; here they give 1 and -1.
"""

from __future__ import annotations

import math

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Erf")
def erf(x: Array) -> Array:
    flat = [math.erf(value) for value in x.astype(np.float64).ravel().tolist()]
    return np.asarray(flat, np.float64).reshape(x.shape).astype(x.dtype)
