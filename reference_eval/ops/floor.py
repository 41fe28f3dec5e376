"""Floor: the largest integer that is not above x.

Dtypes: floats.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Floor")
def floor(x: Array) -> Array:
    return np.floor(x)
