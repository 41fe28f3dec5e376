"""Shape: the sizes of the axes.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Shape")
def shape(value: Array, *, out_type: np.dtype[Any]) -> Array:
    return np.asarray(value.shape, out_type)
