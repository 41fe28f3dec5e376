"""TensorArraySizeV3: the number of elements.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.registry import op
from reference_eval.state import TensorArray


@op("TensorArraySizeV3")
def tensor_array_size(handle: TensorArray, flow: Any) -> Any:
    return np.int32(len(handle.elements))
