"""Invert: every bit flipped.

Dtypes: integers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("Invert")
def invert(x: Array) -> Array:
    return np.invert(x)
