"""Texts inside error messages: names made safe to print, lists cut off, suggestions for a wrong
name.
"""

from __future__ import annotations

from collections.abc import Iterable


def printable(text: str, kept: str = "") -> str:
    """Return text with everything that could control a terminal written as an escape: names come
    from untrusted files.

    Control characters (C0, DEL, C1), bidirectional overrides, invisible format characters and lone
    surrogates become ``\\x1b`` or ``\\u202e``, unless they are among ``kept``. The backslash itself
    is left alone.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in kept else ascii(char)[1:-1] for char in text
    )


_LONG = 200  # characters of a name that are compared with others


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Return up to three of the ``known`` names that are like a name, the most similar first.

    Case does not count.
    """
    import difflib  # only where a name is wrong

    folded = {one.lower(): one for one in known}
    return [
        folded[one]
        for one in difflib.get_close_matches(name.lower()[:_LONG], list(folded), cutoff=cutoff)
    ]


def like(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean NAME?`` for a name that is not among the ``known`` names; "" when none
    is similar.
    """
    near = nearest(name, known)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def shortened(text: str, most: int, mark: str = "…") -> str:
    """Cut a text to at most `most` characters; a mark at its end shows that something was left
    out.
    """
    return text if len(text) <= most else text[: most - len(mark)] + mark


def listed(texts: Iterable[str], most: int = 8, between: str = ", ") -> str:
    """Join the first texts for a message, with the number of texts left out."""
    texts = list(texts)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more
