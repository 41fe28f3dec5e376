"""TensorListPushBack, PopBack: a list with one element more or less.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.lists import list_element, list_shape
from reference_eval.registry import op
from reference_eval.state import TensorList, size_of


@op("TensorListPushBack")
def tensor_list_push_back(values: TensorList, item: Array) -> TensorList:
    size = values.nbytes + size_of(item)
    return TensorList(values.dtype, values.shape, (*values.elements, item), size)


@op("TensorListPopBack")
def tensor_list_pop_back(values: TensorList, shape: Array) -> tuple[TensorList, Array]:
    if not values.elements:
        raise ValueError("Trying to pop from an empty list.")
    last = list_element(values, len(values.elements) - 1, list_shape(shape))
    size = values.nbytes - size_of(values.elements[-1])
    return TensorList(values.dtype, values.shape, values.elements[:-1], size), last
