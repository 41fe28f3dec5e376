"""Text of untrusted files, made safe for a terminal."""

from __future__ import annotations


def printable(text: str, newlines: bool = True) -> str:
    """``text`` with everything that could steer a terminal written as an escape: names come from untrusted files.

    Control characters (C0, DEL, C1), bidirectional overrides, invisible format characters and lone surrogates become
    ``\\x1b`` or ``\\u202e``; line feeds too unless ``newlines``. The backslash itself is left alone.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or (newlines and char == "\n") else ascii(char)[1:-1] for char in text)
