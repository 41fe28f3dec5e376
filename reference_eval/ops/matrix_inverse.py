"""MatrixInverse: the inverse of square matrices, by LU factors.

Dtypes: floats, complex.
Accuracy: that of LAPACK; ill-conditioned matrices differ more.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("MatrixInverse")
def matrix_inverse(matrices: Array, *, adjoint: bool = False) -> Array:
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2]:
        raise ValueError(f"Input matrix must be square, got {list(matrices.shape)}")
    try:
        inverse = np.linalg.inv(matrices)
    except np.linalg.LinAlgError as error:
        raise ValueError("Input is not invertible.") from error
    return np.conj(np.swapaxes(inverse, -1, -2)) if adjoint else inverse
