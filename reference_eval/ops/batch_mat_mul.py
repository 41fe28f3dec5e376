"""BatchMatMul, V2, V3: matrix products over broadcast leading axes; adj_x conjugates too.

Dtypes: numbers.
Accuracy: sums in another order, as MatMul.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(x: Array, y: Array, *, adj_x: bool = False, adj_y: bool = False) -> Array:
    left = np.conj(np.swapaxes(x, -1, -2)) if adj_x else x
    right = np.conj(np.swapaxes(y, -1, -2)) if adj_y else y
    return np.matmul(left, right)
