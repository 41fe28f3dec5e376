"""TensorListLength: the number of elements.

Dtypes: int32.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import TensorList


@op("TensorListLength")
def tensor_list_length(values: TensorList) -> Array:
    return np.asarray(len(values.elements), np.int32)
