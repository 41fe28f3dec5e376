"""Equal: x == y; shapes that do not broadcast give False if the node allows it.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, broadcasts
from reference_eval.registry import op


@op("Equal")
def equal(x: Array, y: Array, *, incompatible_shape_error: bool = True) -> Array:
    if not incompatible_shape_error and not broadcasts(x.shape, y.shape):
        return np.asarray(False)
    return np.asarray(x == y, bool)
