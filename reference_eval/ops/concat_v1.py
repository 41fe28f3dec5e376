"""Concat: joins tensors along an axis, which is the first input.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Concat")
def concat_v1(axis: Array, values: list[Array]) -> Array:
    return np.concatenate(values, int(axis))
