"""Reciprocal, Inv: 1 / x.

Dtypes: floats, complex.
Accuracy: exact: one rounding.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Reciprocal", "Inv")
def reciprocal(x: Array) -> Array:
    return np.ones((), x.dtype) / x
