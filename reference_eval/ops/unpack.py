"""Unpack: splits a tensor along an axis, which goes away.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Unpack")
def unpack(value: Array, *, num: int, axis: int = 0) -> list[Array]:
    moved = np.moveaxis(value, axis, 0)
    if len(moved) != num:
        raise ValueError(f"the axis has {len(moved)} elements, not {num}")
    return [moved[index, ...] for index in range(num)]
