"""StringLength: bytes, or characters of UTF-8.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("StringLength")
def string_length(values: Array, *, unit: bytes = b"BYTE") -> Array:
    count = (lambda text: len(text.decode())) if unit == b"UTF8_CHAR" else len
    return np.asarray([count(text) for text in values.ravel().tolist()], np.int32).reshape(
        values.shape
    )
