"""Tile: repeats a tensor along its axes.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape


@op("Tile")
def tile(value: Array, multiples: Array) -> Array:
    check_shape(np.multiply(value.shape, multiples, dtype=object), value.itemsize)
    return np.tile(value, multiples.tolist())
