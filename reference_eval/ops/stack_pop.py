"""StackPop, StackPopV2: takes the last value from a stack.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import Stack


@op("StackPop", "StackPopV2")
def stack_pop(handle: Stack, *, call: Call) -> Array:
    if not handle.elements:
        raise ValueError("Stack is empty when calling Pop()")
    value = handle.elements.pop()
    call.hold(-value.nbytes)
    return value
