"""Bucketize: the number of boundaries that are not above a value.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Bucketize")
def bucketize(value: Array, *, boundaries: list[float]) -> Array:
    return np.searchsorted(np.asarray(boundaries, np.float32), value, side="right").astype(np.int32)
