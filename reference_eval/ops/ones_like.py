"""OnesLike: ones of the shape of a tensor.

Dtypes: numbers, bool.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("OnesLike")
def ones_like(value: Array) -> Array:
    return np.ones_like(value)
