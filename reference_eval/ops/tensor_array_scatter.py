"""TensorArrayScatterV3: sets elements from the rows of a tensor.

Dtypes: every.
Accuracy: exact; a sum of gradients has the order of the writes.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import TensorArray
from reference_eval.tensor_arrays import write


@op("TensorArrayScatterV3")
def tensor_array_scatter(
    handle: TensorArray, indices: Array, value: Array, flow: Any, *, call: Call
) -> Any:
    if value.ndim == 0 or len(value) != indices.size:
        raise ValueError(f"{indices.size} indices for a value of shape {list(value.shape)}")
    for index, row in zip(indices.tolist(), value):
        write(handle, index, row, call)
    return flow
