"""BucketizeWithInputBoundaries: as Bucketize, with the boundaries as an input.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("BucketizeWithInputBoundaries")
def bucketize_inputs(value: Array, boundaries: Array) -> Array:
    return np.searchsorted(boundaries, value, side="right").astype(np.int32)
