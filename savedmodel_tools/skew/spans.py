"""Spans: sets of releases as text, ``1.12-1.15,2.3-``.

An open end extends to the newest release of the table.

Adding a release without changes leaves every span as it is, so the table's diffs show only what is
new.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def to_text(members: Collection[int], names: Sequence[str]) -> str:
    """Return the span of the releases ``members``, numbers into ``names``."""
    parts = []
    last = len(names) - 1
    index = 0
    while index <= last:
        if index not in members:
            index += 1
            continue
        start = index
        while index < last and index + 1 in members:
            index += 1
        end = "" if index == last else names[index]
        parts.append(names[start] if names[start] == end else f"{names[start]}-{end}")
        index += 1
    return ",".join(parts)


def from_text(text: str, names: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the releases of a span.

    Raises ValueError for a release that is not in ``names``.
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        start, dash, end = part.partition("-")
        first = names.index(start)
        last = first if not dash else names.index(end) if end else len(names) - 1
        found.update(range(first, last + 1))
    return frozenset(found)
