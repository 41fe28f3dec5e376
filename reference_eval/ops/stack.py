"""Stack, StackV2: an empty stack; StackClose: nothing, the stack ends with the call.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import Stack


@op("StackV2")
def stack_v2(max_size: Array, *, elem_type: np.dtype[Any]) -> Stack:
    return Stack(elem_type, int(max_size))


@op("Stack")
def stack(*, elem_type: np.dtype[Any]) -> Stack:
    return Stack(elem_type, -1)


@op("StackClose", "StackCloseV2")
def stack_close(handle: Stack, *, call: Call) -> list[Any]:
    call.hold(-sum(element.nbytes for element in handle.elements))
    handle.elements.clear()
    return []
