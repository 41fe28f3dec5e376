"""TensorListGather: elements by index along a new first axis.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, check_indices
from reference_eval.lists import list_shape, stacked
from reference_eval.registry import op
from reference_eval.state import TensorList


@op("TensorListGather")
def tensor_list_gather(values: TensorList, indices: Array, shape: Array) -> Array:
    check_indices(indices, len(values.elements))
    return stacked(values, indices.tolist(), list_shape(shape))
