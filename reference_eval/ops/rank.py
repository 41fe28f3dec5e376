"""Rank: the number of axes.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Rank")
def rank(value: Array) -> Array:
    return np.asarray(value.ndim, np.int32)
