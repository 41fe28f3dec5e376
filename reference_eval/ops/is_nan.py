"""IsNan: whether a value is NaN.

Dtypes: floats.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("IsNan")
def is_nan(x: Array) -> Array:
    return np.isnan(x)
