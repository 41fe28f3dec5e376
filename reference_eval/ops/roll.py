"""Roll: shifts elements along axes; those that fall off the end return at the start.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Roll")
def roll(value: Array, shift: Array, axis: Array) -> Array:
    if value.ndim == 0:
        raise ValueError("input must be 1-D or higher")
    return np.roll(value, tuple(shift.ravel().tolist()), tuple(axis.ravel().tolist()))
