"""Rsqrt: 1 / sqrt(x).

Dtypes: floats, complex.
Accuracy: 2 ulp in float32: kernels may use one rounding less.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Rsqrt")
def rsqrt(x: Array) -> Array:
    return np.ones((), x.dtype) / np.sqrt(x)
