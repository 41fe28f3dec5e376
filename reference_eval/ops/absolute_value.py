"""Abs, ComplexAbs: the absolute value; the smallest integer stays itself.

Dtypes: numbers.
Accuracy: of real numbers exact; of complex ones 2 ulp.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Abs", "ComplexAbs")
def absolute(x: Array) -> Array:
    return np.abs(x)
