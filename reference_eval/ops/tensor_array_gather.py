"""TensorArrayGatherV3: elements along a new first axis.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any, Optional

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.lists import along_new_axis
from reference_eval.registry import op
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
    return along_new_axis(rows, (element_shape, handle.shape), handle.dtype)
