"""TensorListElementShape: the shape of an element; -1 for an unknown rank.

Dtypes: int32, int64.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import TensorList


@op("TensorListElementShape")
def tensor_list_element_shape(values: TensorList, *, shape_type: np.dtype[Any]) -> Array:
    return np.asarray(-1 if values.shape is None else values.shape, shape_type)
