"""Sign: -1, 0 or 1; NaN stays NaN.

Dtypes: numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Sign")
def sign(x: Array) -> Array:
    return np.sign(x)
