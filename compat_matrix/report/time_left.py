"""The time that a run still needs, estimated from the costs of its cells and from the speed of this
machine so far.

The number of cells is a bad measure: a run begins with the start of TensorFlow, and cells differ by
a factor of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable

from compat_matrix.cells.plan import Cell
from compat_matrix.report.cell_costs import CellCosts

SILENT_SECONDS = 60.0  # at the start of a run: its speed is not known yet


class TimeLeft:
    """The work of a run in seconds of the machine on which the costs were measured: all of it, and
    what is done.

    Each of ``processes`` spends the time of a start before its first cell.
    """

    def __init__(self, costs: CellCosts, cells: Iterable[Cell], processes: int = 1) -> None:
        self._costs = costs
        self._start = costs.start * max(1, processes)
        self._total = self._start + sum(map(costs.of, cells))
        self._done = 0.0

    def finished(self, cell: Cell) -> None:
        """Count a cell that has ended."""
        self._done += self._costs.of(cell)

    def seconds(self, elapsed: float) -> float | None:
        """Return the seconds that are left ``elapsed`` seconds after the start; None if nobody
        knows yet.
        """
        if elapsed < SILENT_SECONDS or not self._done:
            return None
        done = self._start + self._done
        return elapsed * max(0.0, self._total - done) / done
