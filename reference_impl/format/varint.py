"""Base-128 integers, least significant group first: block handles, prefix lengths, string lengths."""

from __future__ import annotations

from typing import Union

_MAX_BYTES = 10


def read_varint(data: Union[bytes, memoryview], position: int, end: int) -> tuple[int, int]:
    """Decodes the unsigned 64-bit integer at `position`; returns it and the position after it.

    Raises ValueError when it runs over `end` or does not fit 64 bits; callers name the file and the place.
    """
    value = shift = 0
    for index in range(position, min(end, position + _MAX_BYTES)):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise ValueError("a variable-length integer does not fit 64 bits")
            return value, index + 1
        shift += 7
    fault = "cut off" if end - position < _MAX_BYTES else "too long"
    raise ValueError(f"a variable-length integer is {fault}")


def write_varint(value: int) -> bytes:
    """Encodes a non-negative integer."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
