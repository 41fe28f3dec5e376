"""LeakyRelu: x above 0, alpha times x below.

Dtypes: floats.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("LeakyRelu")
def leaky_relu(x: Array, *, alpha: float = 0.2) -> Array:
    return np.where(x > 0, x, x * np.asarray(alpha, x.dtype))
