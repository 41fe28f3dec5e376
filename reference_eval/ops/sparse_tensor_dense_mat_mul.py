"""SparseTensorDenseMatMul: the product of a sparse and a dense matrix.

Dtypes: numbers.
Accuracy: sums in the order of the indices.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("SparseTensorDenseMatMul")
def sparse_tensor_dense_mat_mul(
    indices: Array, values: Array, shape: Array, b: Array, *, adjoint_a: bool, adjoint_b: bool
) -> Array:
    rows, columns = indices.T[::-1] if adjoint_a else indices.T
    dense = np.conj(b.T) if adjoint_b else b
    count = int(shape[1] if adjoint_a else shape[0])
    out = np.zeros(check_shape([count, dense.shape[1]], b.itemsize), b.dtype)
    check_indices(columns, len(dense))
    factors = np.conj(values) if adjoint_a else values
    np.add.at(out, rows, factors[:, None] * dense[columns])
    return out
