"""BroadcastGradientArgs: the axes over which gradients of two shapes are summed.

Dtypes: int32, int64.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("BroadcastGradientArgs")
def broadcast_gradient_args(first: Array, second: Array) -> tuple[Array, Array]:
    if first.tolist() == second.tolist():
        return first[:0], second[:0]
    rank = max(len(second), len(first))
    left = [1] * (rank - len(first)) + first.tolist()
    right = [1] * (rank - len(second)) + second.tolist()
    summed_left, summed_right = [], []
    for axis, (a, b) in enumerate(zip(left, right)):
        if a == 1 and (b != 1 or axis < rank - len(first) or a == b):
            summed_left.append(axis)
        if b == 1 and (a != 1 or axis < rank - len(second) or a == b):
            summed_right.append(axis)
    return np.asarray(summed_left, first.dtype), np.asarray(summed_right, first.dtype)
