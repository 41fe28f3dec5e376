"""Relu: the larger of x and 0; NaN stays NaN.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Relu")
def relu(x: Array) -> Array:
    return np.maximum(x, np.zeros((), x.dtype))
