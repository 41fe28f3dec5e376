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


class UniqueNames:
    """Gives out names that occur once.

    Args:
      taken: names that are in use already.
    """

    def __init__(self, taken: Iterable[str] = ()):
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}  # wanted name -> number of the last one given out; many may want the same

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def reserve(self, names: Iterable[str]) -> None:
        """Let nobody take these names from now on."""
        self._taken.update(names)

    def take(self, wanted: str) -> str:
        """Return `wanted`, or where it is in use `wanted_1`, `wanted_2`, …; the name is in use from now on."""
        name = wanted
        while name in self._taken:
            self._numbers[wanted] = self._numbers.get(wanted, 0) + 1
            name = f"{wanted}_{self._numbers[wanted]}"
        self._taken.add(name)
        return name
