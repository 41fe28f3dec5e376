"""LogicalNot: the negation.

Dtypes: bool.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("LogicalNot")
def logical_not(x: Array) -> Array:
    return np.logical_not(x)
