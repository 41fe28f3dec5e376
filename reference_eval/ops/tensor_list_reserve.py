"""TensorListReserve, EmptyTensorList: a list without values.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.lists import list_shape
from reference_eval.registry import op
from reference_eval.sizes import check_shape
from reference_eval.state import TensorList


@op("TensorListReserve")
def tensor_list_reserve(shape: Array, count: Array, *, element_dtype: np.dtype[Any]) -> TensorList:
    check_shape([int(count)], 64)
    return TensorList(element_dtype, list_shape(shape), (None,) * int(count))


@op("EmptyTensorList")
def empty_tensor_list(shape: Array, most: Array, *, element_dtype: np.dtype[Any]) -> TensorList:
    return TensorList(element_dtype, list_shape(shape))
