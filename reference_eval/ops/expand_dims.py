"""ExpandDims: adds an axis of size 1.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ExpandDims")
def expand_dims(value: Array, axis: Array) -> Array:
    return np.expand_dims(value, int(axis.item()))
