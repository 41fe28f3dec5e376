"""RaggedRange: ranges, one for each row, and where they begin.

Dtypes: real numbers.
Accuracy: exact for integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("RaggedRange")
def ragged_range(
    starts: Array, limits: Array, deltas: Array, *, Tsplits: np.dtype[Any]
) -> tuple[Array, Array]:
    starts, limits, deltas = np.broadcast_arrays(*map(np.atleast_1d, (starts, limits, deltas)))
    rows = [np.arange(*bounds, dtype=starts.dtype) for bounds in zip(starts, limits, deltas)]
    splits = np.cumsum([0, *[len(row) for row in rows]]).astype(Tsplits)
    return splits, np.concatenate([np.empty(0, starts.dtype), *rows])
