"""TopK, TopKV2: the k largest values of the last axis; ties by index.

Dtypes: real numbers.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op

INT32 = np.dtype(np.int32)


@op("TopKV2")
def top_k_v2(value: Array, k: Array, *, index_type: np.dtype[Any] = INT32) -> tuple[Array, Array]:
    return largest(value, int(k), index_type)


@op("TopK")
def top_k(value: Array, *, k: int) -> tuple[Array, Array]:
    return largest(value, k, INT32)


def largest(value: Array, k: int, index_type: np.dtype[Any]) -> tuple[Array, Array]:
    """Return the k largest values of each row, in order, and their places."""
    if not 0 <= k <= value.shape[-1]:
        raise ValueError(f"input must have at least k columns: {value.shape[-1]} < {k}")
    # ~x reverses the order of integers, even of the smallest, for which -x overflows.
    order = np.argsort(~value if value.dtype.kind in "iu" else -value, axis=-1, kind="stable")
    found = order[..., :k]
    return np.take_along_axis(value, found, -1), found.astype(index_type)
