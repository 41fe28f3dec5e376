"""Read JSON like the real server's parser (RapidJSON 1.1): NaN, Inf and Infinity are numbers.

Errors have its texts and offsets. Python's parser reads the usual document; :class:`_Slow` reads a
refused document again and finds the error. The parser changed with TensorFlow Serving 2.18:
:func:`follow` chooses the release to imitate.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from savedmodel_standin import json_numbers, json_writer
from savedmodel_standin.errors import ServingError, invalid

_DEEPEST = 400
_SHOWN = 1 << 20  # bytes of a value in an error
# Numbers that are perhaps too big for a double, and halves of surrogate pairs: Python takes one
# without the other.
_DOUBTFUL = re.compile(r"[eE]\+?\d{3}|\d{300}|\\u[dD][89a-fA-F]")
_NUMBER = re.compile(r"-?(?:(NaN|Inf(?:inity|(?!i)))|(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d*)?)")
_PLAIN = {"n": ("null", None), "t": ("true", True), "f": ("false", False)}
_WORDS = {"N": "NaN", "I": "Infinity"}
_END = "\0"  # RapidJSON takes this character for the end of the text
_MARK = "\ufeff"  # of UTF-8: passed over, and counted in offsets
_LETTERS = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


_NEW = (2, 18)
_newer = False


def follow(release: str) -> None:
    """Read requests, and print values in errors, as the server of this TensorFlow release
    ("2.15.1") does.

    The parser of 2.18 and later ignores text after the document. It prints an array on one line,
    and NaN as nothing.
    """
    global _newer
    number = re.match(r"(\d+)\.(\d+)", release)
    _newer = number is not None and (int(number[1]), int(number[2])) >= _NEW


class Repeated(dict[str, Any]):
    """An object with several members of one name: as a dict, the first counts.

    ``members``: all of them, in order.
    """

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__()
        self.members = members
        for name, value in members:
            self.setdefault(name, value)


def members(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return all members of an object, in order, those of one name too."""
    return value.members if isinstance(value, Repeated) else list(value.items())


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeated(pairs)


_decode = json.JSONDecoder(
    object_pairs_hook=_object_of, parse_float=json_numbers.double, parse_int=json_numbers.integer
).decode


def parse(body: bytes) -> dict[str, Any]:
    """Return the object of a request.

    Strings hold undecodable bytes as surrogates. Raises :class:`ServingError`.
    """
    if not body:
        raise invalid("JSON Parse error: The document is empty")
    text = body.decode("utf-8", "surrogateescape")
    if not _DOUBTFUL.search(text):
        try:
            return _object(_decode(text.removeprefix(_MARK)))
        except (ValueError, RecursionError):
            pass
    return _object(_Slow(text).document())


def as_name(text: str) -> str:
    """Return a string for a message's field, which cannot hold undecodable bytes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise format_error(value, "Is not object")
    return value


def format_error(value: Any, text: str) -> ServingError:
    return invalid(f"JSON Value: {shown(value)} {text}")


def shown(value: Any) -> str:
    """Return a value for an error's text, cut when it is long: indentation may make it a thousand
    times as long.
    """
    writer = json_writer.Writer(_SHOWN)
    writer.single_line = writer.finite_only = _newer
    writer.ends = (
        not _newer
    )  # the writer of RapidJSON 1.1 gives up at NaN, and what it has written is the text
    try:
        writer.value(_printed(value))
    except json_writer.Ended:
        pass
    except (json_writer.TooLong, RecursionError):
        return writer.text()[:_SHOWN].decode("utf-8", "replace") + "...TRUNCATED"
    return writer.text().decode("utf-8", "replace")


def _printed(value: Any) -> Any:
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    return json_writer.Raw(json_writer.decimal(value, abs(value) <= 3.4028234663852886e38))


def kind(value: Any) -> str:
    """Return the JSON type's name in error texts."""
    if value is None or isinstance(value, bool):
        return {None: "Null", True: "True", False: "False"}[value]
    if isinstance(value, (int, float)):
        return "Number"
    if isinstance(value, dict):
        return "Object"
    return "Array" if isinstance(value, list) else "String"


class _Slow:
    """A recursive-descent parser that knows where it is."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, len(_MARK) * text.startswith(_MARK)

    def document(self) -> Any:
        self._space()
        if self._peek() in ("", _END):
            raise self._error("The document is empty.")
        value = self._value(0)
        self._space()
        if self._peek() not in ("", _END) and not _newer:
            raise self._error("The document root must not be followed by other values.")
        return value

    def _error(self, text: str, at: int | None = None) -> ServingError:
        offset = len(
            self._text[: self._at if at is None else at].encode("utf-8", "surrogateescape")
        )
        return invalid(f"JSON Parse error: {text} at offset: {offset}")

    def _space(self) -> None:
        while self._peek() in (" ", "\n", "\r", "\t"):
            self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise self._error("Terminate parsing due to Handler error.")
        letter = self._peek()
        if letter == "{":
            return self._members(depth)
        if letter == "[":
            return self._items(depth)
        if letter == '"':
            return self._string()
        if letter in _PLAIN and letter:
            word, value = _PLAIN[letter]
            self._word(word)
            return value
        return self._number()

    def _word(self, word: str) -> None:
        """Skip a word. The offset of an error is after the correct letters."""
        for letter in word:
            if self._peek() != letter:
                raise self._error("Invalid value.")
            self._at += 1

    def _members(self, depth: int) -> dict[str, Any]:
        out: list[tuple[str, Any]] = []
        for _ in self._each("}", "Missing a comma or '}' after an object member."):
            if self._peek() != '"':
                raise self._error("Missing a name for object member.")
            name = self._string()
            self._space()
            if self._peek() != ":":
                raise self._error("Missing a colon after a name of object member.")
            self._at += 1
            self._space()
            out.append((name, self._value(depth + 1)))
        return _object_of(out)

    def _items(self, depth: int) -> list[Any]:
        out: list[Any] = []
        for _ in self._each("]", "Missing a comma or ']' after an array element."):
            out.append(self._value(depth + 1))  # noqa: PERF401  a comprehension would nest one call more
        return out

    def _each(self, end: str, problem: str) -> Iterator[None]:
        """Yield at each value between brackets, which are separated by commas.

        The caller reads it.
        """
        self._at += 1
        self._space()
        if self._peek() != end:
            yield
            self._space()
            while self._peek() != end:
                if self._peek() != ",":
                    raise self._error(problem)
                self._at += 1
                self._space()
                yield
                self._space()
        self._at += 1

    def _string(self) -> str:
        out: list[str] = []
        self._at += 1
        while True:
            letter = self._peek()
            if letter == '"':
                self._at += 1
                return "".join(out)
            if letter in ("", _END):
                raise self._error("Missing a closing quotation mark in string.")
            if letter < " ":
                raise self._error("Invalid escape character in string.")
            self._at += 1
            out.append(self._escape(self._at - 1) if letter == "\\" else letter)

    def _escape(self, start: int) -> str:
        letter = self._peek()
        self._at += 1
        if letter in _LETTERS and letter:
            return _LETTERS[letter]
        if letter != "u":
            raise self._error("Invalid escape character in string.", start)
        code = self._hex(start)
        if 0xD800 <= code < 0xE000:
            if code >= 0xDC00:  # a low half by itself is written as three bytes
                return chr(code).encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
            if self._text[self._at : self._at + 2] != "\\u":
                raise self._error("The surrogate pair in string is invalid.", start)
            self._at += 2
            low = self._hex(start)
            if not 0xDC00 <= low < 0xE000:
                raise self._error("The surrogate pair in string is invalid.", start)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        return chr(code)

    def _hex(self, start: int) -> int:
        digits = self._text[self._at : self._at + 4]
        if not re.fullmatch("[0-9a-fA-F]{4}", digits):
            raise self._error("Incorrect hex digit after \\u escape in string.", start)
        self._at += 4
        return int(digits, 16)

    def _number(self) -> Any:
        start, match = self._at, _NUMBER.match(self._text, self._at)
        if match is None:
            self._at += self._peek() == "-"
            self._word(_WORDS.get(self._peek(), "0"))
        assert match is not None
        self._at = match.end()
        word, _, fraction, exponent = match.groups()
        negative = match.group().startswith("-")
        if word:
            number = float("nan") if word == "NaN" else float("inf")
            return -number if negative else number
        if fraction == ".":
            raise self._error("Miss fraction part in number.", match.end(3))
        if exponent and not exponent[-1].isdigit():
            raise self._error("Miss exponent in number.")
        text = match.group()
        try:
            return (
                json_numbers.integer(text)
                if fraction is None and exponent is None
                else json_numbers.double(text)
            )
        except json_numbers.TooBig:
            raise self._error("Number too big to be stored in double.", start) from None
