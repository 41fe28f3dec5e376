"""Transpose, ConjugateTranspose: the axes in another order.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Transpose")
def transpose(x: Array, perm: Array) -> Array:
    return np.transpose(x, perm.tolist())
