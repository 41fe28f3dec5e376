"""AsString: numbers as C's printf writes them.

Dtypes: numbers, bool, string.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, object_array
from reference_eval.registry import op


@op("AsString")
def as_string(
    values: Array,
    *,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: bytes = b"",
) -> Array:
    kind = "f"
    if scientific or shortest:
        kind = "e" if scientific else "g"
    spec = "%" + fill.decode() + (str(width) if width >= 0 else "")
    if values.dtype.kind == "f":
        spec += f".{precision}{kind}" if precision >= 0 else kind
    elif values.dtype.kind in "iu":
        spec += "d"
    if values.dtype == np.dtype(bool):
        flat = [b"true" if value else b"false" for value in values.ravel()]
    elif values.dtype == np.dtype(object):
        flat = values.ravel().tolist()
    else:
        flat = [(spec % value).encode() for value in values.ravel().tolist()]
    return object_array(flat, values.shape)
