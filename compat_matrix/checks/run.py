"""Execute one cell."""

from __future__ import annotations

from pathlib import Path

from compat_matrix.plan import Cell
from compat_matrix.results import Observation
from compat_matrix.runtimes import Host


class NotProduced(Exception):
    """The artifact a cell asks about could not be made; its production is a cell of its own. The cell is NOT_RUN."""


def run_cell(cell: Cell, host: Host, out: Path) -> Observation:
    """Execute ``cell``. Returns what was observed; raises :class:`NotProduced` for a cell that must be reported as NOT_RUN."""
    raise NotImplementedError
