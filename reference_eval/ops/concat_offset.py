"""ConcatOffset: where each part of a concatenation begins.

Dtypes: int32, int64.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("ConcatOffset")
def concat_offset(axis: Array, shapes: list[Array]) -> list[Array]:
    offsets = []
    total = 0
    for shape in shapes:
        offset = np.zeros_like(shape)
        offset[int(axis)] = total
        total += int(shape[int(axis)])
        offsets.append(offset)
    return offsets
