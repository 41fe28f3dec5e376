"""TensorListSplit: rows of a tensor in parts of the given lengths.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.lists import list_shape
from reference_eval.registry import op
from reference_eval.state import TensorList


@op("TensorListSplit")
def tensor_list_split(tensor: Array, shape: Array, lengths: Array) -> TensorList:
    parts = np.split(tensor, np.cumsum(lengths)[:-1]) if len(lengths) else []
    return TensorList(tensor.dtype, list_shape(shape), tuple(parts))
