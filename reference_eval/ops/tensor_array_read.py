"""TensorArrayReadV3: an element; zeros for one that was not written and whose shape is known.

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
from reference_eval.tensor_arrays import read


@op("TensorArrayReadV3")
def tensor_array_read(
    handle: TensorArray, index: Array, flow: Any, *, dtype: np.dtype[Any], call: Call
) -> Array:
    return read(handle, int(index), call)
