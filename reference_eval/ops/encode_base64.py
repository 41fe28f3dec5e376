"""EncodeBase64, DecodeBase64: web-safe base 64.

Dtypes: string.
Accuracy: exact.
"""

from __future__ import annotations

import base64

from reference_eval.arrays import Array, each
from reference_eval.registry import op


@op("EncodeBase64")
def encode_base64(values: Array, *, pad: bool = False) -> Array:
    def encode(text: bytes) -> bytes:
        coded = base64.urlsafe_b64encode(text)
        return coded if pad else coded.rstrip(b"=")

    return each(values, encode)


@op("DecodeBase64")
def decode_base64(values: Array) -> Array:
    return each(values, lambda text: base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4)))
