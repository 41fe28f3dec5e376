"""Squeeze: drops axes of size 1, all or those of the attribute.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Squeeze")
def squeeze(value: Array, *, squeeze_dims: list[int]) -> Array:
    return np.squeeze(value, tuple(squeeze_dims) if squeeze_dims else None)
