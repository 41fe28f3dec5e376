"""TensorListStack: the elements along a new first axis.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.lists import list_shape, stacked
from reference_eval.registry import op
from reference_eval.state import TensorList


@op("TensorListStack")
def tensor_list_stack(values: TensorList, shape: Array, *, num_elements: int = -1) -> Array:
    if num_elements not in (-1, len(values.elements)):
        raise ValueError(f"the list has {len(values.elements)} elements, not {num_elements}")
    return stacked(values, range(len(values.elements)), list_shape(shape))
