"""Numbers of JSON as TensorFlow Serving reads and writes them.

The server's parser (RapidJSON, without its flag for full precision) collects the digits of a number
as an integer and multiplies it by, or divides it by, one power of ten. That is exact for at most
2^53 and powers up to 22; other numbers may be a few units in the last place away from the nearest
double. Its threads flush subnormal numbers to zero, both when they read and when they write.
"""

from __future__ import annotations

import math
import re
import struct
from typing import Any

import numpy as np

_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_FLOAT = struct.Struct("<f")
_POWERS = [float(f"1e{power}") for power in range(309)]
_SMALLEST = float(np.finfo(np.float64).tiny)
# A float32 is flushed to zero where it would be subnormal if it had its 24 bits: the processor
# rounds first, to any exponent.
_SMALLEST_SINGLE = 2.0**-126 - 2.0**-151
_FULL = 0x1999999999999999  # an integer beyond this has no room for another digit in 64 bits
_FULL_NEGATIVE = 0x0CCCCCCCCCCCCCCC
_EXACT = (1 << 53) - 1
_SHORT = 17  # characters of a number whose digits are below 2^53
_LONGEST = 24  # more than an integer of 64 bits has
_LARGEST = 308  # power of ten
_FAR = 1 << 20  # beyond any exponent that gives a number
_DIGITS = 17  # of a fraction, beyond which digits are skipped
_FULL_DOUBLE = 1.7976931348623157e307  # a double beyond this has no room for another digit


class TooBig(ValueError):
    """Raised for a number that the server's parser refuses."""


def integer(text: str) -> int | float:
    """Return the integer that the server reads: one of 64 bits, signed or not, else a double.

    Raises TooBig.
    """
    number = int(text) if len(text) < _LONGEST else 1 << 64
    return number if -1 << 63 <= number < 1 << 64 else double(text)


def double(text: str) -> float:
    """Return the double that the server reads of a JSON number.

    The parser looks at the exponent alone, so the product of digits and power may be infinite.
    Raises TooBig.
    """
    if len(text) < _SHORT and "e" not in text and "E" not in text:
        return float(text)
    match = _NUMBER.fullmatch(text)
    assert match is not None, text
    sign, whole, fraction, exponent = match.groups()
    value, shift = _digits(whole, fraction or "", negative=bool(sign))
    power = max(-_FAR, min(int(exponent or 0), _FAR)) - shift
    if power > _LARGEST:
        raise TooBig(text)
    number = flushed(_scaled(value, power))
    return -number if sign else number


def _digits(whole: str, fraction: str, negative: bool) -> tuple[float, int]:
    """Return all digits as one number, and how many of them followed the point."""
    full, last = (_FULL_NEGATIVE, 8) if negative else (_FULL, 5)
    number, value, counted = 0, None, 0
    for digit in map(int, whole):
        if value is None and (number > full or (number == full and digit > last)):
            value = float(number)
        if value is None:
            number = number * 10 + digit
            counted += 1
        elif value >= _FULL_DOUBLE:
            raise TooBig(whole)
        else:
            value = value * 10.0 + digit
    counted = max(counted - 1, 0)  # the first digit of all is not counted
    shift = 0
    rest = list(map(int, fraction))
    if value is None:
        while rest and number <= _EXACT:
            number = number * 10 + rest.pop(0)
            shift += 1
            counted += number != 0
        value = float(number)
    for digit in rest:
        if counted >= _DIGITS:
            break
        value = value * 10.0 + digit
        shift += 1
        counted += value > 0.0
    return value, shift


def _scaled(value: float, power: int) -> float:
    if power < -2 * _LARGEST:
        return 0.0
    if power < -_LARGEST:
        return flushed(value / _POWERS[_LARGEST]) / _POWERS[-power - _LARGEST]
    return value * _POWERS[power] if power >= 0 else value / _POWERS[-power]


def flushed(value: float) -> float:
    """Return a double, and zero in place of a subnormal one."""
    return math.copysign(0.0, value) if abs(value) < _SMALLEST else value


def single(value: float) -> float:
    """Return the float32 that a double is converted to: infinite beyond the largest one, zero where
    it would be subnormal.
    """
    try:
        (narrow,) = _FLOAT.unpack(_FLOAT.pack(value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return math.copysign(0.0, value) if abs(value) < _SMALLEST_SINGLE else float(narrow)


def array_flushed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array of floats with zeros in place of its subnormal numbers."""
    return np.where(
        np.abs(array) < np.finfo(array.dtype).tiny, np.copysign(np.zeros_like(array), array), array
    )
