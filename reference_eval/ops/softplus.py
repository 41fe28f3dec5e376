"""Softplus: log(1 + e^x), without overflow.

Dtypes: floats.
Accuracy: 4 ulp in float32.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Softplus")
def softplus(x: Array) -> Array:
    return np.logaddexp(x, np.zeros((), x.dtype))
