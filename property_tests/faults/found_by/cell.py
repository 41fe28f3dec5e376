"""A `matrix run` whose worker has a fault: it costs one cell, the others are as ever."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from property_tests.faults.declaring import Fault, NotHere, Seen
from property_tests.faults.faulty_world import FaultyWorld, cell_of, on_this_machine
from property_tests.faults.stage import Stage

CASES = ("case_a", "case_b")
CONSUMER, CASE, OP, NEXT_OP = "reference", "case_b", "signatures", "call"
Records = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Cell:
    """The cell that a fault of a worker costs.

    Attributes:
      outcome: of the cell; "" where the fault costs no cell.
      error_class: of the cell.
      says: a regular expression that its message fits.
      or_none: the fault comes behind a reply: it costs this cell, the next one of the worker, or
        none.
    """

    outcome: str = ""
    error_class: str = ""
    says: str = ""
    or_none: bool = False

    def shown(self) -> str:
        return "`matrix run`"

    def declaration(self) -> tuple[object, ...]:
        return ("cell", self.outcome, self.error_class, self.says, self.or_none)

    def look(self, fault: Fault, stage: Stage) -> Seen:
        """Run two cases, one of whose requests has the fault."""
        runs = stage.shared(Runs)
        world, code = runs.go(fault)
        observed = world.observed()
        lost = changed(observed, runs.undisturbed)
        cells = [cell_of(CONSUMER, CASE, op) for op in (OP, NEXT_OP)]
        record = observed[lost[0]] if lost else {"outcome": "", "error_class": "", "message": ""}
        defect = self._defect(lost, cells, record) or "; ".join(world.left())
        happened = list(world.faults.glob("done-*"))
        if code != (1 if lost else 0) or not happened:
            defect = f"the run ends with {code}, the fault happened {len(happened)} times"
        what = f"{record['outcome']} {record['error_class']}" if lost else "no cell is lost"
        line = record["message"].partition(": b'")[0]  # not the bytes, which are random
        return Seen(f"{code}: {what}", line, defect)

    def _defect(self, lost: list[str], cells: list[str], record: dict[str, Any]) -> str:
        if self.or_none:
            return "" if not lost or (len(lost) == 1 and lost[0] in cells) else f"{lost} are lost"
        if lost != (cells[:1] if self.outcome else []):
            return f"{lost} are lost"
        if not self.outcome:
            return ""
        seen = (record["outcome"], record["error_class"])
        if seen != (self.outcome, self.error_class) or not re.search(self.says, record["message"]):
            return f"{seen}: {record['message']}"
        return ""


class Runs:
    """Runs in a folder, with what one observes to which nothing happens."""

    def __init__(self, folder: Path) -> None:
        if not on_this_machine():
            raise NotHere("workers are found in /proc")
        self.folder = folder
        world = FaultyWorld(folder / "undisturbed", CASES)
        if world.go() or world.left():
            raise RuntimeError((world.root / "log").read_text()[-3000:])
        self.undisturbed = world.observed()

    def go(self, fault: Fault) -> tuple[FaultyWorld, int]:
        """Run with the fault. Returns the world of the run and the exit code."""
        world = FaultyWorld(self.folder / fault.name, CASES, hanging=(CASE,))
        fault.plant(world.root)
        return world, world.go()


def changed(observed: Records, undisturbed: Records) -> list[str]:
    """Return the cells that an undisturbed run observes otherwise."""
    return [
        cell for cell, record in observed.items() if _facts(record) != _facts(undisturbed[cell])
    ]


def _facts(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "plan_id"}
