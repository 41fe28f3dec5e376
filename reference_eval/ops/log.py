"""Log: the natural logarithm; NaN below 0, minus infinity at 0.

Dtypes: floats, complex.
Accuracy: 2 ulp in float32.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Log")
def log(x: Array) -> Array:
    return np.log(x)
