"""ScatterNd: adds slices into a tensor of zeros by index tuples.

Dtypes: numbers.
Accuracy: sums in the order of the indices.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("ScatterNd")
def scatter_nd(indices: Array, updates: Array, shape: Array) -> Array:
    out = np.zeros(check_shape(shape.tolist(), updates.itemsize), updates.dtype)
    for axis in range(indices.shape[-1]):
        check_indices(indices[..., axis], out.shape[axis])
    np.add.at(out, tuple(np.moveaxis(indices, -1, 0)), updates)
    return out
