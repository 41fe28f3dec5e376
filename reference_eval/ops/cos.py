"""Cos: the cosine of radians.

Dtypes: floats, complex.
Accuracy: 2 ulp in float32.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Cos")
def cos(x: Array) -> Array:
    return np.cos(x)
