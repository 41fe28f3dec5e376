"""Einsum: a sum of products by an equation.

Dtypes: numbers.
Accuracy: sums in another order, as MatMul.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Einsum")
def einsum(inputs: list[Array], *, equation: bytes) -> Array:
    return np.asarray(np.einsum(equation.decode(), *inputs), inputs[0].dtype)
