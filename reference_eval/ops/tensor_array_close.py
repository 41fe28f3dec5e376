"""TensorArrayCloseV3: removes the elements.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.state import TensorArray, size_of


@op("TensorArrayCloseV3")
def tensor_array_close(handle: TensorArray, *, call: Call) -> list[Any]:
    call.hold(-sum(map(size_of, handle.elements)))
    handle.elements.clear()
    return []
