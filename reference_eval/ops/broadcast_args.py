"""BroadcastArgs: the shape that two shapes broadcast to.

Dtypes: int32, int64.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("BroadcastArgs")
def broadcast_args(first: Array, second: Array) -> Array:
    shape = np.broadcast_shapes(tuple(first.tolist()), tuple(second.tolist()))
    return np.asarray(shape, first.dtype)
