"""LogicalAnd: both are true.

Dtypes: bool.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("LogicalAnd")
def logical_and(x: Array, y: Array) -> Array:
    return np.logical_and(x, y)
