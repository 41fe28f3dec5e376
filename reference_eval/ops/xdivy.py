"""Xdivy: x / y, and 0 wherever x is 0.

Dtypes: floats, complex.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Xdivy")
def xdivy(x: Array, y: Array) -> Array:
    return np.where(x == 0, x.dtype.type(0), x / y)
