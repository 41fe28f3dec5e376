"""Gather: slices by index along the first axis.

Dtypes: every.
Accuracy: exact; refuses an index out of range.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op


@op("Gather")
def gather_v1(params: Array, indices: Array) -> Array:
    check_indices(indices, params.shape[0])
    return np.take(params, indices, 0)
