"""BitwiseAnd: bits that are set in both numbers.

Dtypes: integers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("BitwiseAnd")
def bitwise_and(x: Array, y: Array) -> Array:
    return np.bitwise_and(x, y)
