"""Split: equal parts along an axis.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Split")
def split(axis: Array, value: Array, *, num_split: int) -> list[Array]:
    return list(np.split(value, num_split, int(axis)))
