"""IsFinite: whether a value is neither infinite nor NaN.

Dtypes: floats.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("IsFinite")
def is_finite(x: Array) -> Array:
    return np.isfinite(x)
