"""ReverseV2: reverses axes.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ReverseV2")
def reverse(value: Array, axes: Array) -> Array:
    return np.flip(value, tuple(axes.tolist()))
