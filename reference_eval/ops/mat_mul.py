"""MatMul: the matrix product, transposed as the attributes say.

Dtypes: numbers.
Accuracy: sums in another order: about n / 8 ulp of the largest term, for n terms.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("MatMul")
def mat_mul(a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"MatMul needs matrices, not shapes {a.shape} and {b.shape}")
    return np.matmul(a.T if transpose_a else a, b.T if transpose_b else b)
