"""UnicodeDecode: the code points of strings, with row splits.

Dtypes: string to int32.
Accuracy: exact for UTF-8, UTF-16-BE and UTF-32-BE.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.errors import NotEvaluatedError
from reference_eval.registry import op

CONTROL = 32  # characters below are control characters
_ENCODINGS = {b"UTF-8": "utf-8", b"UTF-16-BE": "utf-16-be", b"UTF-32-BE": "utf-32-be"}


@op("UnicodeDecode")
def unicode_decode(
    strings: Array,
    *,
    input_encoding: bytes,
    errors: bytes = b"replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    Tsplits: np.dtype[Any],
) -> tuple[Array, Array]:
    encoding = _ENCODINGS.get(input_encoding.upper())
    if encoding is None:
        raise NotEvaluatedError(f"the encoding {input_encoding.decode()!r} is not evaluated")
    points: list[int] = []
    splits = [0]
    for text in strings.ravel().tolist():
        found = code_points(text, encoding, errors.decode(), replacement_char)
        if replace_control_characters and errors == b"ignore":
            found = [point for point in found if point >= CONTROL]
        elif replace_control_characters:
            found = [replacement_char if point < CONTROL else point for point in found]
        points += found
        splits.append(len(points))
    return np.asarray(splits, Tsplits), np.asarray(points, np.int32)


def code_points(text: bytes, encoding: str, errors: str, replacement: int) -> list[int]:
    """Return the code points of one string.

    Raises ValueError: it is not valid and `errors` is ``strict``.
    """
    if errors == "strict":
        try:
            return list(map(ord, text.decode(encoding)))
        except UnicodeDecodeError as error:
            raise ValueError("Invalid formatting on input string") from error
    decoded = text.decode(encoding, errors)
    return [replacement if char == "\ufffd" else ord(char) for char in decoded]
