"""Maximum: the larger value with broadcasting; a NaN in either input gives NaN.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Maximum")
def maximum(x: Array, y: Array) -> Array:
    return np.maximum(x, y)
