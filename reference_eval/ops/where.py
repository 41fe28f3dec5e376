"""Where: the indices of the elements that are not 0, in row-major order.

Dtypes: numbers, bool.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Where")
def where(value: Array) -> Array:
    return np.argwhere(value).astype(np.int64)
