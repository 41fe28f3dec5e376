"""TensorListSetItem: a list with one element replaced.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op
from reference_eval.sizes import check_shape
from reference_eval.state import TensorList, size_of


@op("TensorListSetItem")
def tensor_list_set_item(
    values: TensorList, index: Array, item: Array, *, resize_if_index_out_of_bounds: bool = False
) -> TensorList:
    elements = list(values.elements)
    if resize_if_index_out_of_bounds and index >= len(elements):
        check_shape([int(index) + 1], 64)
        elements += [None] * (int(index) + 1 - len(elements))
    check_indices(index, len(elements))
    size = values.nbytes - size_of(elements[int(index)]) + size_of(item)
    elements[int(index)] = item
    return TensorList(values.dtype, values.shape, tuple(elements), size)
