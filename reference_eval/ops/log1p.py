"""Log1p: the natural logarithm of 1 + x, without cancellation near 0.

Dtypes: floats, complex.
Accuracy: 4 ulp in float32.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Log1p")
def log1p(x: Array) -> Array:
    return np.log1p(x)
