"""TensorArrayWriteV3: sets an element. In an array of gradients a second write adds.

Dtypes: every.
Accuracy: exact; a sum of gradients has the order of the writes.
"""

from __future__ import annotations

from typing import Any

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import TensorArray
from reference_eval.tensor_arrays import write


@op("TensorArrayWriteV3")
def tensor_array_write(
    handle: TensorArray, index: Array, value: Array, flow: Any, *, call: Call
) -> Any:
    write(handle, int(index), value, call)
    return flow
