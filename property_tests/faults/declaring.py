"""The one shape in which every planted fault is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from property_tests.faults.stage import Stage

Plant = Callable[[Path], None]  # puts the fault into the files of a folder


class NotHere(Exception):
    """This machine lacks what a fault needs, for example mount namespaces."""


@dataclass(frozen=True)
class Seen:
    """What the finder of a fault saw.

    Attributes:
      result: the exit code, or the check and its outcome.
      line: the line of the output or message that names the fault.
      defect: why the fault does not count as found; "" when it was found.
    """

    result: str
    line: str
    defect: str


class Finder(Protocol):
    """Who must notice a fault: a command, the checks of a case, a run, a writer."""

    def shown(self) -> str:
        """Return its cell in the table of the page."""
        ...

    def declaration(self) -> tuple[object, ...]:
        """Return what a record depends on: when that changes, the fault is planted again."""
        ...

    def look(self, fault: Fault, stage: Stage) -> Seen:
        """Plant the fault, look for it, and look once where it is not planted.

        Raises:
          NotHere: this machine cannot plant it.
        """
        ...


@dataclass(frozen=True)
class Fault:
    """A fault and who finds it.

    Attributes:
      name: its id on the page and in the record, for example ``lost-asset``.
      what: what is wrong, in words for the page.
      plant: puts the fault into the files that the finder looks at.
      found_by: who must notice it.
      gate: whether it is planted for every commit, not only every night.
      place: where it is planted: the heading on the page. The catalogue fills this in.
    """

    name: str
    what: str
    plant: Plant
    found_by: Finder
    gate: bool = False
    place: str = ""
