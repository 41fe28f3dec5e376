"""SelectV2: by a condition, with broadcasting.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("SelectV2")
def select_v2(condition: Array, t: Array, e: Array) -> Array:
    return np.where(condition, t, e)
