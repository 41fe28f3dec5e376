"""TensorArrayGatherV3: elements along a new first axis.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.sizes import check_shape
from reference_eval.state import TensorArray
from reference_eval.tensor_arrays import read


@op("TensorArrayGatherV3")
def tensor_array_gather(
    handle: TensorArray,
    indices: Array,
    flow: Any,
    *,
    element_shape: Optional[tuple[int, ...]] = None,
    call: Call,
) -> Array:
    rows = [read(handle, index, call) for index in indices.tolist()]
    if rows:
        check_shape([len(rows), *rows[0].shape], handle.dtype.itemsize)
        return np.stack(rows)
    for shape in (element_shape, handle.shape):
        if shape is not None and -1 not in shape:
            return np.empty([0, *shape], handle.dtype)
    raise ValueError("an array of no elements of unknown shape cannot be stacked")
