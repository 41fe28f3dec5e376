"""Substr: bytes from a place; a place outside of a string is refused.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, object_array
from reference_eval.registry import op


@op("Substr")
def substr(values: Array, pos: Array, length: Array, *, unit: bytes = b"BYTE") -> Array:
    values, pos, length = np.broadcast_arrays(values, pos, length)
    flat = []
    for raw, start, count in zip(values.ravel().tolist(), pos.ravel(), length.ravel()):
        text = raw.decode() if unit == b"UTF8_CHAR" else raw
        if not -len(text) <= start <= len(text):
            raise ValueError(f"pos {start} out of range for string {raw!r}")
        first = start if start >= 0 else len(text) + start
        part = text[first : first + count]
        flat.append(part.encode() if isinstance(part, str) else part)
    return object_array(flat, values.shape)
