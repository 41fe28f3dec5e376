"""TensorListResize: a longer or shorter list.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.sizes import check_shape
from reference_eval.state import TensorList


@op("TensorListResize")
def tensor_list_resize(values: TensorList, size: Array) -> TensorList:
    check_shape([int(size)], 64)
    elements = (*values.elements, *[None] * (int(size) - len(values.elements)))[: int(size)]
    return TensorList(values.dtype, values.shape, elements)
