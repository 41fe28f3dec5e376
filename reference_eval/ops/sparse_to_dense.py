"""SparseToDense: a tensor of a default value with values at indices.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("SparseToDense")
def sparse_to_dense(
    indices: Array, shape: Array, values: Array, default: Array, *, validate_indices: bool = True
) -> Array:
    out = np.full(check_shape(shape.tolist(), values.itemsize), default, values.dtype)
    places = indices.reshape(-1, out.ndim)
    for axis in range(out.ndim):
        check_indices(places[:, axis], out.shape[axis])
    out[tuple(places.T)] = values
    return out
