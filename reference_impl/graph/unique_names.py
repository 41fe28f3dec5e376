"""Names that occur once: which names repeat, and a name that is still free.

A number or underscores are added to names in use. The resulting names are stored in files, so the
scheme must not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    listed = list(names)
    if len(set(listed)) == len(listed):
        return []
    return sorted(name for name, count in Counter(listed).items() if count > 1)


def unique_name(wanted: str, taken: Container[str], *, numbered: bool = True) -> str:
    """Return `wanted` or, if it is in use, `wanted_1`, `wanted_2`, … (`wanted_`, `wanted__`, …
    without numbers).
    """
    name, count = wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}_{count}" if numbered else f"{name}_"
    return name


class UniqueNames:
    """Generates unique names; faster than `unique_name` if many names are requested more than once.

    `taken` names are in use already. Names with the same `key` count as the same name.
    """

    def __init__(self, taken: Iterable[str] = (), key: Callable[[str], str] = str):
        self._key = key
        self._taken = set(map(key, taken))
        self._numbers: dict[
            str, int
        ] = {}  # wanted name -> number of the name that was free last; those before it stay in use

    def __contains__(self, name: str) -> bool:
        return self._key(name) in self._taken

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve these names."""
        self._taken.update(map(self._key, names))

    def free(self, wanted: str) -> str:
        """Return `wanted` or, if it is in use, `wanted_1`, `wanted_2`, …"""
        count = self._numbers.get(wanted, 0)
        name = f"{wanted}_{count}" if count else wanted
        while name in self:
            count += 1
            name = f"{wanted}_{count}"
        self._numbers[wanted] = count
        return name

    def take(self, wanted: str) -> str:
        """Return a free name as `free` does, and mark it as in use."""
        name = self.free(wanted)
        self._taken.add(self._key(name))
        return name
