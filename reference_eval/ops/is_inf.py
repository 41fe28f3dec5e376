"""IsInf: whether a value is infinite.

Dtypes: floats.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("IsInf")
def is_inf(x: Array) -> Array:
    return np.isinf(x)
