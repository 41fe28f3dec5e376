"""Gather, GatherV2: slices by index along an axis, with batch axes.

Dtypes: every.
Accuracy: exact; refuses an index out of range.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op


@op("GatherV2")
def gather(params: Array, indices: Array, axis: Array, *, batch_dims: int = 0) -> Array:
    at = int(axis) + params.ndim if axis < 0 else int(axis)
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    check_indices(indices, params.shape[at])
    if not batch:
        return np.take(params, indices, at)
    shape = params.shape[:batch]
    parts = [np.take(params[key], indices[key], at - batch) for key in np.ndindex(shape)]
    if not parts:
        result = params.shape[:at] + indices.shape[batch:] + params.shape[at + 1 :]
        return np.empty(result, params.dtype)
    return np.stack(parts).reshape(shape + parts[0].shape)
