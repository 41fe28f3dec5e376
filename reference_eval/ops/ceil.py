"""Ceil: the smallest integer that is not below x.

Dtypes: floats.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Ceil")
def ceil(x: Array) -> Array:
    return np.ceil(x)
