"""SparseReshape: indices of the same elements in another shape.

Dtypes: int64.
Accuracy: exact.
"""

from __future__ import annotations

import math

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("SparseReshape")
def sparse_reshape(indices: Array, shape: Array, new_shape: Array) -> tuple[Array, Array]:
    total = math.prod(shape.tolist())
    sizes = new_shape.tolist()
    if -1 in sizes:
        known = math.prod([size for size in sizes if size != -1])
        sizes[sizes.index(-1)] = total // known if known else 0
    if math.prod(sizes) != total:
        raise ValueError(f"cannot reshape {shape.tolist()} to {new_shape.tolist()}")
    if not len(indices):
        return np.empty([0, len(sizes)], np.int64), np.asarray(sizes, np.int64)
    flat = np.ravel_multi_index(tuple(indices.T), tuple(shape.tolist()))
    places = np.stack(np.unravel_index(flat, sizes), axis=1).astype(np.int64)
    return places, np.asarray(sizes, np.int64)
