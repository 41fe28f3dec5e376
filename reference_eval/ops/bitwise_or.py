"""BitwiseOr: bits that are set in one number or both.

Dtypes: integers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("BitwiseOr")
def bitwise_or(x: Array, y: Array) -> Array:
    return np.bitwise_or(x, y)
