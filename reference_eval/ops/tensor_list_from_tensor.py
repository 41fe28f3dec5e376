"""TensorListFromTensor: the rows of a tensor.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.lists import list_shape
from reference_eval.registry import op
from reference_eval.state import TensorList


@op("TensorListFromTensor")
def tensor_list_from_tensor(tensor: Array, shape: Array) -> TensorList:
    rows = [tensor[index, ...] for index in range(len(tensor))]
    return TensorList(tensor.dtype, list_shape(shape), tuple(rows))
