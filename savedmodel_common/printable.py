"""Text for a terminal: untrusted text made safe, suggestions for unknown names, counted nouns."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Sequence

from reference_impl import errors
from reference_impl.errors import like as like


def printable(text: str, newlines: bool = True) -> str:
    """Return text as `reference_impl.errors.printable` does; line feeds are kept unless
    ``newlines`` is false.
    """
    return errors.printable(text, "\n" if newlines else "")


def message_of(error: Exception) -> str:
    """Return the message of an error, which begins with a file: relative, if the file is below the
    current directory.

    An error of the operating system is put in the words of our own: the file, then the reason,
    without its number.
    """
    from reference_impl.format.container.files import shown

    if (
        isinstance(error, OSError)
        and not isinstance(error, errors.SavedModelError)
        and error.strerror
    ):
        names = " -> ".join(
            shown(os.fsdecode(name))
            for name in (error.filename, error.filename2)
            if isinstance(name, (str, bytes))
        )
        return f"{names}: {error.strerror}" if names else error.strerror
    return shown(str(error))


def told(error: Exception) -> str:
    """Return the class and the message of an error."""
    return f"{type(error).__name__}: {message_of(error)}"


_LISTED = 40  # names of a list that a message holds whole


def unknown(what: str, patterns: Iterable[str], known: Iterable[str]) -> str:
    """Return a sentence about the first of ``patterns`` (with ``*``) that matches none of the
    ``known`` names.

    It ends with the names that are like it, or else with all names. "" when all match.
    """
    known = list(dict.fromkeys(known))
    name = next((pattern for pattern in patterns if not fnmatch.filter(known, pattern)), None)
    if name is None:
        return ""
    listed = f" There are: {', '.join(known)}." if 0 < len(known) <= _LISTED else ""
    return f"no {what} is called {printable(name, newlines=False)}.{like(name, known) or listed}"


def first_of(texts: Sequence[object], what: str = "") -> str:
    """Return the first of some texts, and the number of the others: ``a (and 2 more
    differences)``.
    """
    return str(texts[0]) + (
        f" (and {len(texts) - 1} more{f' {what}' if what else ''})" if len(texts) > 1 else ""
    )


def counted(number: int, noun: str) -> str:
    """Return the number and the noun: ``1 model``, ``2 models``, ``2 entries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
