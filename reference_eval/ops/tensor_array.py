"""TensorArrayV3: an array of tensors, each written once.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.sizes import check_shape
from reference_eval.state import TensorArray


@op("TensorArrayV3")
def tensor_array(
    size: Array,
    *,
    dtype: np.dtype[Any],
    element_shape: Optional[tuple[int, ...]] = None,
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    identical_element_shapes: bool = False,
    call: Call,
) -> tuple[TensorArray, Any]:
    (count,) = check_shape([int(size)], np.dtype(object).itemsize)
    flow = call.output_dtypes[1].type(0)
    elements: list[Optional[Array]] = [None] * count
    made = TensorArray(dtype, element_shape, elements, dynamic_size, clear_after_read)
    made.is_uniform = identical_element_shapes
    return made, flow
