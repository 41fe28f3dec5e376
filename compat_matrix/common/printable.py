"""Text for a terminal: untrusted text made safe, suggestions for unknown names, counted nouns."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable


def printable(text: str, newlines: bool = True) -> str:
    """Return ``text`` with everything that could control a terminal written as an escape: names come from untrusted files.

    Control characters (C0, DEL, C1), bidirectional overrides, invisible format characters and lone surrogates become
    ``\\x1b`` or ``\\u202e``; line feeds too unless ``newlines``. The backslash itself is left alone.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or (newlines and char == "\n") else ascii(char)[1:-1] for char in text)


def unknown(what: str, patterns: Iterable[str], known: Iterable[str]) -> str:
    """Return a sentence about the first of ``patterns`` (with ``*``) that matches none of the ``known`` names.

    "" when all match.
    """
    known = list(known)
    name = next((pattern for pattern in patterns if not fnmatch.filter(known, pattern)), None)
    return "" if name is None else f"no {what} is called {printable(name, newlines=False)}.{like(name, known)}"


def like(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean NAME?`` for a name that is not among the ``known`` names; "" when none is similar."""
    import difflib  # only where a name is wrong

    near = difflib.get_close_matches(name, list(known))
    return f" Did you mean {' or '.join(near)}?" if near else ""


def counted(number: int, noun: str) -> str:
    """Return the number and the noun: ``1 model``, ``2 models``, ``2 entries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
