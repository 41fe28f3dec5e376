"""InvertPermutation: the place of each number.

Dtypes: int32, int64.
Accuracy: exact; other vectors are refused.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("InvertPermutation")
def invert_permutation(x: Array) -> Array:
    if sorted(x.tolist()) != list(range(len(x))):
        raise ValueError(f"{x.tolist()} is not a permutation")
    return np.argsort(x).astype(x.dtype)
