"""Execute the cells of a plan in this process, with workers that stay warm from one plan to the
next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from compat_matrix.cells.plan import Cell, Plan, models_to_serve
from compat_matrix.cells.results import Observation, Result
from compat_matrix.checks import run_cell
from compat_matrix.engine.executor import Executor
from compat_matrix.hosts.pool import Hosts
from compat_matrix.verdict import Ledger
from savedmodel_common import interrupts

Observers = Mapping[
    str, Callable[[Cell], Observation]
]  # consumer without a worker -> function that observes its cells


def run_plan(
    hosts: Hosts,
    out: Path,
    plan: Plan,
    ledger: Ledger | None = None,
    observers: Observers | None = None,
    replay: Callable[[Cell], str] = lambda cell: "",  # of a cell that cannot be executed alone
    foretell: Callable[[Cell, Result], object] | None = None,
) -> Iterator[Result]:
    """Yield the judged result of each cell, in the order of the plan.

    Resources that cells share are freed at the end.

    ``out`` is the folder for artifacts and evidence; ``foretell`` adds to an observed result what
    is predicted of its cell. Raises KeyboardInterrupt between cells if the process was asked to
    end.
    """
    upcoming = models_to_serve(plan, out)
    mine = observers or {}

    def observe(cell: Cell) -> Observation:
        if cell.consumer in mine:
            return mine[cell.consumer](cell)
        host = hosts.of(cell.runtime)
        host.expect(upcoming)
        return run_cell(cell, host, out)

    executor = Executor(out, plan, ledger or Ledger(), observe, replay, foretell=foretell)
    try:
        for cell in plan:
            interrupts.check()
            yield executor.execute(cell)
    finally:
        hosts.release()
