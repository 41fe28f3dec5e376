"""StringLower, StringUpper: case of ASCII letters, or of all letters with UTF-8.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array, each
from reference_eval.registry import op


@op("StringLower")
def string_lower(values: Array, *, encoding: bytes = b"") -> Array:
    return each(
        values, lambda text: unicode_text(text).lower().encode() if encoding else text.lower()
    )


@op("StringUpper")
def string_upper(values: Array, *, encoding: bytes = b"") -> Array:
    return each(
        values, lambda text: unicode_text(text).upper().encode() if encoding else text.upper()
    )


def unicode_text(text: bytes) -> str:
    """Return a string as TensorFlow's kernels read it with UTF-8: up to the first NUL byte."""
    return text.partition(b"\0")[0].decode("utf-8", "replace")
