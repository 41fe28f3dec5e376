"""GatherNd: slices by index tuples.

Dtypes: every.
Accuracy: exact; refuses an index out of range.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op


@op("GatherNd")
def gather_nd(params: Array, indices: Array) -> Array:
    for axis in range(indices.shape[-1]):
        check_indices(indices[..., axis], params.shape[axis])
    if indices.shape[-1] == 0:
        return np.broadcast_to(params, indices.shape[:-1] + params.shape).copy()
    key = (*tuple(np.moveaxis(indices, -1, 0)), ...)
    return params[key]
