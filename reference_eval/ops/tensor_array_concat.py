"""TensorArrayConcatV3: the elements along their first axis, and their lengths.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.sizes import check_shape
from reference_eval.state import TensorArray
from reference_eval.tensor_arrays import read


@op("TensorArrayConcatV3")
def tensor_array_concat(handle: TensorArray, flow: Any, *, call: Call) -> tuple[Array, Array]:
    parts = [read(handle, index, call) for index in range(len(handle.elements))]
    if not parts:
        raise ValueError("an array of no elements cannot be concatenated")
    if any(part.ndim == 0 for part in parts):
        raise ValueError("Concat saw a scalar shape")
    lengths = np.asarray([len(part) for part in parts], np.int64)
    check_shape([int(lengths.sum()), *parts[0].shape[1:]], handle.dtype.itemsize)
    return np.concatenate(parts), lengths
