"""LowerBound, UpperBound: places in sorted rows.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("LowerBound")
def lower_bound(rows: Array, values: Array, *, out_type: np.dtype[Any]) -> Array:
    found = [np.searchsorted(row, wanted) for row, wanted in zip(rows, values)]
    return np.asarray(found, out_type).reshape(values.shape)


@op("UpperBound")
def upper_bound(rows: Array, values: Array, *, out_type: np.dtype[Any]) -> Array:
    found = [np.searchsorted(row, wanted, "right") for row, wanted in zip(rows, values)]
    return np.asarray(found, out_type).reshape(values.shape)
