"""ReadFile: the bytes of an asset of the model; another file is refused.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, object_array
from reference_eval.executor import Call
from reference_eval.registry import op


@op("ReadFile")
def read_file(filename: Array, *, call: Call) -> Array:
    return object_array([call.read_asset(filename.item())], [])
