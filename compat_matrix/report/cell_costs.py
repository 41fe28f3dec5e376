"""The costs of cells, measured in an earlier whole run: ``cell_costs.json``, which ``python -m
docs.cell_costs RUN`` writes.

A cost is a number of seconds on the machine of that run. Another machine is slower or faster, so
only ratios of costs count.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compat_matrix.cells.plan import Cell
from savedmodel_common import strict_json

COSTS_FILE = Path(__file__).with_name("cell_costs.json")


@dataclass(frozen=True)
class CellCosts:
    """The costs of one run.

    Attributes:
      start: seconds from the start of a process to its first cell.
      usual: seconds of a cell of a kind that the run did not have.
      kinds: kind of a cell -> the mean of its seconds.
      cases: case -> how many times the mean its cells take; cases that take about the mean are left
        out.
    """

    start: float
    usual: float
    kinds: Mapping[str, float]
    cases: Mapping[str, float]

    def of(self, cell: Cell) -> float:
        """Return the cost of a cell."""
        return self.kinds.get(kind_of(cell), self.usual) * self.cases.get(cell.case, 1.0)


def kind_of(cell: Cell) -> str:
    """Return ``consumer/check``; a production has the producer in place of the consumer."""
    return f"{cell.producer if cell.is_production else cell.consumer}/{cell.check}"


@functools.cache
def recorded() -> CellCosts:
    """Return the costs that are part of the package."""
    data = strict_json.loads(COSTS_FILE.read_text(encoding="utf-8"))
    return CellCosts(data["start"], data["usual"], data["kinds"], data["cases"])
