"""OneHot: rows with one on value; an index out of range gives a row of off values.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("OneHot")
def one_hot(indices: Array, depth: Array, on: Array, off: Array, *, axis: int = -1) -> Array:
    check_shape([*indices.shape, int(depth)], on.itemsize)
    hit = indices[..., None] == np.arange(int(depth))
    rows = np.where(hit, on, off).astype(on.dtype)
    return rows if axis == -1 else np.moveaxis(rows, -1, axis)
