"""StackPush, StackPushV2: puts a value on a stack; the result is the value.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import Stack


@op("StackPush", "StackPushV2")
def stack_push(handle: Stack, value: Array, *, call: Call) -> Array:
    if value.dtype != handle.dtype:
        raise TypeError(f"Must have type {handle.dtype} but got {value.dtype}")
    if 0 <= handle.most <= len(handle.elements):
        raise ValueError(f"Stack overflowed its max_size ({handle.most})")
    call.hold(value.nbytes)
    handle.elements.append(value)
    return value
