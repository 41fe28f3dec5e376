"""TensorArrayGradV3, TensorArrayGradWithShape: the array of the gradients of an array.

It is made once for each source.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import TensorArray
from reference_eval.tensor_arrays import gradients_of


@op("TensorArrayGradV3")
def tensor_array_grad(handle: TensorArray, flow: Any, *, source: bytes) -> tuple[TensorArray, Any]:
    return gradients_of(handle, source, ()), flow


@op("TensorArrayGradWithShape")
def tensor_array_grad_with_shape(
    handle: TensorArray, flow: Any, shape_to_prepend: Array, *, source: bytes
) -> tuple[TensorArray, Any]:
    return gradients_of(handle, source, tuple(shape_to_prepend.tolist())), flow
