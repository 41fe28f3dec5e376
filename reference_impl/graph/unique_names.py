"""Names that occur once: what repeats, and a name that is still free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def repeated(names: Iterable[str]) -> list[str]:
    """The names that are there more than once, sorted."""
    listed = list(names)
    if len(set(listed)) == len(listed):
        return []
    return sorted(name for name, count in Counter(listed).items() if count > 1)
