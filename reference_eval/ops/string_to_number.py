"""StringToNumber: the number that a string writes.

Dtypes: float32, float64, int32, int64.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("StringToNumber")
def string_to_number(values: Array, *, out_type: np.dtype[Any]) -> Array:
    read = float if out_type.kind == "f" else int
    flat = [read(text.decode()) for text in values.ravel().tolist()]
    return np.asarray(flat, out_type).reshape(values.shape)
