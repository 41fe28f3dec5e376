"""TopK, TopKV2: the k largest values of the last axis; ties by index.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("TopKV2")
def top_k(value: Array, k: Array, *, sorted: bool = True) -> tuple[Array, Array]:
    if not 0 <= k <= value.shape[-1]:
        raise ValueError(f"input must have at least k columns: {value.shape[-1]} < {int(k)}")
    order = np.argsort(-value if value.dtype.kind != "u" else ~value, axis=-1, kind="stable")
    found = order[..., : int(k)]
    return np.take_along_axis(value, found, -1), found.astype(np.int32)
