"""Write JSON in the real server's layout: four spaces, and rows of tensors on one line.

Floating-point numbers are the shortest of six or of all significant digits that read back as the
same number, whole ones with ``.0``, and NaN and Infinity stand as they are. Text is not checked to
be UTF-8.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from savedmodel_standin import json_numbers

_ESCAPES = {0x22: b'\\"', 0x5C: b"\\\\", 8: b"\\b", 9: b"\\t", 10: b"\\n", 12: b"\\f", 13: b"\\r"}
_INDENT = b"    "


class Raw(NamedTuple):
    """A value that is JSON text already."""

    text: bytes


class Line(NamedTuple):
    """A value whose arrays stay on one line."""

    value: Any


class TooLong(Exception):
    """Raised when the text has reached its limit."""


class Ended(Exception):
    """Raised at a number that the real server's writer cannot write, where its text ends."""


class Writer:
    """Writes values one after another.

    ``single_line`` if all arrays are to stay on their line; ``finite_only`` to print nothing for
    NaN and Infinity; ``ends`` to raise :class:`Ended` in place of them.

    Args:
      limit: the most bytes of text, 0 for no limit. A longer text raises :class:`TooLong`.
    """

    def __init__(self, limit: int = 0) -> None:
        self.single_line = self.finite_only = self.ends = False
        self._limit = limit
        self._out = bytearray()
        self._levels: list[list[Any]] = []  # [is an array, values so far]

    def text(self) -> bytes:
        return bytes(self._out)

    def _begin(self, array: bool) -> None:
        self._prefix()
        self._levels.append([array, 0])
        self._out += b"[" if array else b"{"

    def _end(self) -> None:
        array, count = self._levels.pop()
        if count and not (array and self.single_line):
            self._newline()
        self._out += b"]" if array else b"}"

    def value(self, value: Any) -> None:
        """Raw text, a string, bytes, a truth value, a number, None, or lists, iterators and dicts
        of them.
        """
        if isinstance(value, Line):
            self.single_line = True
            self.value(value.value)
            self.single_line = False
        elif isinstance(value, (list, tuple, Iterator)) and not isinstance(value, Raw):
            self._begin(array=True)
            for item in value:
                self.value(item)
            self._end()
        elif isinstance(value, dict):
            self._begin(array=False)
            for name, item in value.items():
                self.value(name)
                self.value(item)
            self._end()
        else:
            self._prefix()
            infinite = isinstance(value, float) and not math.isfinite(value)
            if infinite and self.ends:
                raise Ended
            if not (infinite and self.finite_only):
                self._out += _scalar(value)

    def _prefix(self) -> None:
        if self._limit and len(self._out) > self._limit:
            raise TooLong
        if not self._levels:
            return
        array, count = level = self._levels[-1]
        if array:
            self._out += b"," if count else b""
            if not self.single_line:
                self._newline()
            elif count:
                self._out += b" "
        elif count % 2:
            self._out += b": "
        else:
            self._out += b"," if count else b""
            self._newline()
        level[1] += 1

    def _newline(self) -> None:
        self._out += b"\n" + _INDENT * len(self._levels)


def dumps(value: Any) -> bytes:
    """Return the text of a value, see :meth:`Writer.value`."""
    writer = Writer()
    writer.value(value)
    return writer.text()


def _scalar(value: Any) -> bytes:
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, str):
        return quoted(value.encode("utf-8", "surrogateescape"))
    if isinstance(value, bytes):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return {None: b"null", True: b"true", False: b"false"}[value]
    return str(value).encode("ascii") if isinstance(value, int) else decimal(value)


def quoted(text: bytes) -> bytes:
    out = bytearray(b'"')
    for byte in text:
        if byte in _ESCAPES:
            out += _ESCAPES[byte]
        elif byte < 0x20:
            out += f"\\u{byte:04X}".encode("ascii")
        else:
            out.append(byte)
    return bytes(out + b'"')


def decimal(value: Any, single: bool = False) -> bytes:
    """Return a floating-point number as text; ``single``: of 32 bits."""
    number = float(value)
    if number != number:
        return b"NaN"
    if number in (float("inf"), float("-inf")):
        return b"Infinity" if number > 0 else b"-Infinity"
    text = f"{number:.6g}"
    same = np.float32(text) == np.float32(number) if single else float(text) == number
    if not same:
        text = f"{number:.{9 if single else 17}g}"
    return (text if "." in text or "e" in text else text + ".0").encode("ascii")


def elements(array: Any, dtype: str, as_base64: bool) -> Iterable[Any]:
    """The elements of a tensor, in order, as values for a :class:`Writer`.

    ValueError: JSON has no form for the type.
    """
    flat = array.ravel()
    if dtype in ("float32", "float64"):
        return [
            Raw(decimal(item, dtype == "float32"))
            for item in json_numbers.array_flushed(flat).tolist()
        ]
    if dtype == "string":
        if as_base64:
            return [{"b64": base64.b64encode(item).decode("ascii")} for item in flat.tolist()]
        return list(flat.tolist())
    if dtype in ("int8", "uint8", "int16", "int32", "int64", "uint32", "uint64", "bool"):
        return list(flat.tolist())
    raise ValueError(dtype)
