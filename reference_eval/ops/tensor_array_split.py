"""TensorArraySplitV3: sets elements from parts of a tensor along its first axis.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import TensorArray
from reference_eval.tensor_arrays import write


@op("TensorArraySplitV3")
def tensor_array_split(
    handle: TensorArray, value: Array, lengths: Array, flow: Any, *, call: Call
) -> Any:
    if value.ndim == 0 or np.any(lengths < 0) or lengths.sum() != len(value):
        raise ValueError(f"lengths {lengths.tolist()} of a value of shape {list(value.shape)}")
    for index, part in enumerate(np.split(value, np.cumsum(lengths)[:-1]) if lengths.size else []):
        write(handle, index, part, call)
    return flow
