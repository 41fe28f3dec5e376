"""Patterns of RE2, as TensorFlow's string ops take them, in Python's `re`.

In RE2 ``\\d``, ``\\w``, ``\\s`` and ``\\b`` know ASCII alone, ``$`` is the end of the text, and
``\\0`` in a rewrite is the whole match.
"""

from __future__ import annotations

import re

_TOKENS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)
_IN_REWRITE = re.compile(r"\\(.?)", re.DOTALL)


def compiled(pattern: bytes) -> re.Pattern[str]:
    """Return a pattern of RE2 for `re`.

    Raises ValueError: it is not valid, or `re` does not know its syntax.
    """
    text = pattern.decode("utf-8", "surrogateescape")
    try:
        return re.compile(_TOKENS.sub(_token, text), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"Invalid pattern: {text}, error: {error}") from error


def _token(match: re.Match[str]) -> str:
    return r"\Z" if match[0] in ("$", r"\z") else match[0]


def text_of(value: bytes) -> str:
    """Return a string tensor's element as text; bytes that are not UTF-8 stay as they are."""
    return value.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Return the bytes of `text_of`."""
    return text.encode("utf-8", "surrogateescape")


def rewritten(match: re.Match[str], rewrite: str) -> str:
    """Return what replaces a match: ``\\1`` is the first group, ``\\0`` the whole match.

    Raises ValueError: the rewrite names a group that the pattern lacks, or ends in a backslash.
    """

    def part(found: re.Match[str]) -> str:
        if found[1] == "\\":
            return "\\"
        if not found[1].isascii() or not found[1].isdigit():
            raise ValueError(f"Invalid rewrite: {rewrite}")
        if int(found[1]) > match.re.groups:
            raise ValueError(f"Rewrite references group {found[1]}, which the pattern lacks")
        return match[int(found[1])] or ""

    return _IN_REWRITE.sub(part, rewrite)
