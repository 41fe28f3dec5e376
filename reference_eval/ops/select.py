"""Select: by a condition of the same shape, of the first axis, or a scalar.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Select")
def select(condition: Array, t: Array, e: Array) -> Array:
    if condition.ndim == 1 and t.ndim > 1:
        condition = condition.reshape([-1] + [1] * (t.ndim - 1))
    return np.where(condition, t, e)
