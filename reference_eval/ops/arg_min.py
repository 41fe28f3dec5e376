"""ArgMin: the index of the first smallest value along an axis.

Dtypes: real numbers, bool.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ArgMin")
def arg_min(value: Array, dimension: Array, *, output_type: np.dtype[Any]) -> Array:
    return np.argmin(value, axis=int(dimension)).astype(output_type)
