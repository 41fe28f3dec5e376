"""TensorListScatter, V2, IntoExistingList: places rows into a list.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.lists import list_shape
from reference_eval.registry import op
from reference_eval.sizes import check_shape
from reference_eval.state import TensorList


@op("TensorListScatterIntoExistingList")
def tensor_list_scatter(values: TensorList, tensor: Array, indices: Array) -> TensorList:
    elements = list(values.elements)
    size = 1 + (int(indices.max()) if indices.size else -1)
    check_shape([size], 64)
    elements += [None] * (size - len(elements))
    for row, index in enumerate(indices.tolist()):
        elements[index] = tensor[row, ...]
    return TensorList(values.dtype, values.shape, tuple(elements))


@op("TensorListScatterV2")
def tensor_list_scatter_v2(tensor: Array, indices: Array, shape: Array, count: Array) -> TensorList:
    check_shape([int(count) if count > 0 else 0], 64)
    empty = TensorList(tensor.dtype, list_shape(shape), (None,) * int(count))
    return tensor_list_scatter(empty, tensor, indices)
