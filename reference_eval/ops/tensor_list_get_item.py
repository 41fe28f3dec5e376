"""TensorListGetItem: an element; zeros for one that was not set.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, check_indices
from reference_eval.lists import list_element, list_shape
from reference_eval.registry import op
from reference_eval.state import TensorList


@op("TensorListGetItem")
def tensor_list_get_item(values: TensorList, index: Array, shape: Array) -> Array:
    check_indices(index, len(values.elements))
    return list_element(values, int(index), list_shape(shape))
