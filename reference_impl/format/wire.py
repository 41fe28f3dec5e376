"""The untyped wire format of protocol messages: variable-length integers, and the fields of a
message.

A message is a sequence of fields. A field is a tag (its number and wire type in one varint)
followed by its content. A varint holds seven bits in each byte, the least significant first. Tensor
bundles, their tables and split files write their lengths as varints too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional, TypeVar, Union

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(
    6
)  # wire types; BYTES also holds strings, messages and packed lists
WIDTHS = {FIXED64: 8, FIXED32: 4}  # bytes of a content of fixed size

_MAX_BYTES = 10  # of a varint
_MAX_FIELD_NUMBER = 2**29 - 1

Data = Union[bytes, memoryview]
B = TypeVar("B", bytes, memoryview)


class WireError(ValueError):
    """A message is broken, because bytes are missing if it is `truncated`."""

    position = 0  # where `fields` noticed the error
    number: Optional[int] = None  # of the field, if its tag could be read

    def __init__(self, reason: str, truncated: bool = False) -> None:
        super().__init__(reason)
        self.truncated = truncated


def fields(
    data: Data, start: int = 0, end: Optional[int] = None
) -> Iterator[tuple[int, int, Any, int]]:
    """Yield number, wire type, content and the position behind it of each field of a message, which
    is in a range of `data`.

    The content is an int for VARINT, None for the start and the end of a group, else bytes: slices
    if `data` is a memoryview, and copies if it is bytes. The fields inside a group follow its start
    like all others. Raises WireError: the bytes are not a message.
    """
    position, end = start, len(data) if end is None else end
    while position < end:
        number: Optional[int] = None
        try:
            tag, position = read_varint(data, position, end)
            if not 0 < tag >> 3 <= _MAX_FIELD_NUMBER:
                raise WireError(f"field number {tag >> 3}")
            number, kind = tag >> 3, tag & 7
            content: Any = None
            if kind == VARINT:
                content, position = read_varint(data, position, end)
            elif kind == BYTES or kind in WIDTHS:
                length, position = (
                    read_varint(data, position, end) if kind == BYTES else (WIDTHS[kind], position)
                )
                if length > end - position:
                    raise WireError(
                        f"{length} bytes are promised, {end - position} are left", truncated=True
                    )
                content = data[position : position + length]
                position += length
            elif kind not in (GROUP, END_GROUP):
                raise WireError(f"wire type {kind}")
        except WireError as error:
            error.position, error.number = position, number
            raise
        yield number, kind, content, position


def bytes_field(number: int, content: bytes) -> bytes:
    """Return a field of wire type BYTES as it is written."""
    return write_varint(number << 3 | BYTES) + write_varint(len(content)) + content


def read_varint(data: Data, position: int, end: int) -> tuple[int, int]:
    """Decode the unsigned 64-bit integer at `position`; return it and the position after it.

    Raises WireError: the integer runs over `end` or does not fit 64 bits. Callers name the file and
    the place.
    """
    if position < end and data[position] < 0x80:  # most are this short
        return data[position], position + 1
    value = shift = 0
    for index in range(position, min(end, position + _MAX_BYTES)):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise WireError("a variable-length integer does not fit 64 bits")
            return value, index + 1
        shift += 7
    fault = "cut off" if end - position < _MAX_BYTES else "too long"
    raise WireError(f"a variable-length integer is {fault}")


def read_varints(data: Data, count: int) -> tuple[list[int], int]:
    """Decode the first `count` integers; return them and the position after them.

    Raises WireError: an integer is broken; the error's message starts with its index.
    """
    values: list[int] = []
    position, end = 0, len(data)
    try:
        for _ in range(count):
            value = data[position] if position < end else 0x80
            if value < 0x80:  # nearly all lengths of strings
                position += 1
            else:
                value, position = read_varint(data, position, end)
            values.append(value)
    except WireError as error:
        raise WireError(f"{len(values)}: {error}") from None
    return values, position


def write_varint(value: int) -> bytes:
    """Encode a non-negative integer."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def cut(data: B, lengths: list[int], start: int) -> Iterator[B]:
    """Yield consecutive pieces of these lengths, the first at `start`."""
    for length in lengths:
        yield data[start : start + length]
        start += length
