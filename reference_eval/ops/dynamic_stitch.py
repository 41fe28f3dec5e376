"""DynamicStitch, ParallelDynamicStitch: places rows by index; the last one wins.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(indices: list[Array], data: list[Array]) -> Array:
    size = 1 + max([int(part.max()) for part in indices if part.size], default=-1)
    row = data[0].shape[indices[0].ndim :]
    out = np.zeros(check_shape([size, *row], data[0].itemsize), data[0].dtype)
    for places, rows in zip(indices, data):
        out[places.ravel()] = rows.reshape([-1, *row])
    return out
