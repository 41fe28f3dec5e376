"""SparseAdd: the sum of two sparse tensors; sums not above thresh in magnitude are left out.

Dtypes: numbers.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("SparseAdd")
def sparse_add(
    a_indices: Array,
    a_values: Array,
    a_shape: Array,
    b_indices: Array,
    b_values: Array,
    b_shape: Array,
    thresh: Array,
) -> tuple[Array, Array, Array]:
    if a_shape.tolist() != b_shape.tolist():
        raise ValueError(f"the shapes {a_shape.tolist()} and {b_shape.tolist()} differ")
    sums: dict[tuple[int, ...], Any] = {}
    for indices, values in ((a_indices, a_values), (b_indices, b_values)):
        for place, value in zip(map(tuple, indices.tolist()), values):
            sums[place] = sums[place] + value if place in sums else value
    kept = [place for place in sorted(sums) if np.abs(sums[place]) >= thresh]
    found = np.asarray(kept, np.int64).reshape(-1, len(a_shape))
    return found, np.asarray([sums[place] for place in kept], a_values.dtype), a_shape
