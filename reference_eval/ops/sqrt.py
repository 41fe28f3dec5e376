"""Sqrt: the square root; NaN below 0.

Dtypes: floats, complex.
Accuracy: exact: correctly rounded.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Sqrt")
def sqrt(x: Array) -> Array:
    return np.sqrt(x)
