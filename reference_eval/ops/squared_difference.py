"""SquaredDifference: (x - y)(x - y), conjugated for complex numbers.

Dtypes: numbers.
Accuracy: exact: two roundings.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("SquaredDifference")
def squared_difference(x: Array, y: Array) -> Array:
    difference = x - y
    return np.conj(difference) * difference
