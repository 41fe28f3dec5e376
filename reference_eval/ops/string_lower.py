"""StringLower, StringUpper: case of ASCII letters, or of all letters with UTF-8.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, each
from reference_eval.registry import op


@op("StringLower")
def string_lower(values: Array, *, encoding: bytes = b"") -> Array:
    return each(values, lambda text: text.decode().lower().encode() if encoding else text.lower())


@op("StringUpper")
def string_upper(values: Array, *, encoding: bytes = b"") -> Array:
    return each(values, lambda text: text.decode().upper().encode() if encoding else text.upper())
