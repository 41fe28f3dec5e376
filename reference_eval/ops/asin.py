"""Asin: the inverse sine.

Dtypes: floats, complex.
Accuracy: 4 ulp in float32.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Asin")
def asin(x: Array) -> Array:
    return np.arcsin(x)
