"""BitwiseXor: bits that are set in one of two numbers.

Dtypes: integers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("BitwiseXor")
def bitwise_xor(x: Array, y: Array) -> Array:
    return np.bitwise_xor(x, y)
