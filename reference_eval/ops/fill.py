"""Fill: a tensor of one value.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("Fill")
def fill(dims: Array, value: Array) -> Array:
    return np.full(check_shape(dims.tolist(), value.itemsize), value, value.dtype)
