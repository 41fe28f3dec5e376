"""LogicalOr: at least one is true.

Dtypes: bool.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("LogicalOr")
def logical_or(x: Array, y: Array) -> Array:
    return np.logical_or(x, y)
