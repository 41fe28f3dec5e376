"""Size: the number of elements.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Size")
def size(value: Array, *, out_type: np.dtype[Any]) -> Array:
    return np.asarray(value.size, out_type)
