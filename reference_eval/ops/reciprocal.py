"""Reciprocal, Inv: 1 / x.

Dtypes: floats, complex.
Accuracy: one rounding, up to 2 ulp from the kernel.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Reciprocal", "Inv")
def reciprocal(x: Array) -> Array:
    if x.dtype.kind in "biu":
        raise TypeError(f"no kernel computes the reciprocal of {x.dtype}")
    return np.ones((), x.dtype) / x
