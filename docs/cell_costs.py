"""Writes ``compat_matrix/report/cell_costs.json``, from which runs estimate the time that is left,
from a finished run.

    python -m docs.cell_costs RUN_FOLDER

RUN_FOLDER is the output folder of a whole ``matrix run`` on a machine that did nothing else. The
file changes only by this command.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

from compat_matrix.cells.plan import PLAN_FILE, RESULTS_FILE, Cell, Plan
from compat_matrix.cells.results import of_plan, read_results
from compat_matrix.cells.run_file import RunFile
from compat_matrix.engine.sessions import CELLS_FILE
from compat_matrix.report.cell_costs import COSTS_FILE, kind_of
from savedmodel_common.writing import write_text

USUAL = (
    0.67,
    1.5,
)  # a case that takes between these many times the mean needs no factor of its own


def measured(folder: Path) -> list[tuple[Cell, float]]:
    """Return the executed cells of a run, with their seconds.

    Raises PlanError and ResultsError for files that cannot be used.
    """
    plan = Plan.read(folder / PLAN_FILE)
    results = of_plan(read_results(folder / RESULTS_FILE), plan)
    executed = [cell for cell in plan if cell.id in results and results[cell.id].outcome.observable]
    return [(cell, sum(results[cell.id].timings.values())) for cell in executed]


def start_of(folder: Path) -> float:
    """Return the seconds between the start of a run's processes and its first artifact."""
    first = min(path.stat().st_mtime for path in folder.glob("artifacts/*/*/provenance.json"))
    return float(first - (folder / CELLS_FILE).stat().st_mtime)


def costs(
    seconds: list[tuple[Cell, float]], start: float, wall: float, processes: int
) -> dict[str, object]:
    """Return the content of the file.

    The time of a run that no cell accounts for is spread over all cells.
    """
    spent = sum(one for _, one in seconds)
    more = max(0.0, wall * processes - start * processes - spent) / len(seconds)
    by_kind: dict[str, list[float]] = defaultdict(list)
    for cell, one in seconds:
        by_kind[kind_of(cell)].append(one + more)
    kinds = {kind: sum(found) / len(found) for kind, found in by_kind.items()}
    taken: dict[str, float] = defaultdict(float)
    due: dict[str, float] = defaultdict(float)
    for cell, one in seconds:
        taken[cell.case] += one + more
        due[cell.case] += kinds[kind_of(cell)]
    factors = {case: taken[case] / due[case] for case in taken}
    return {
        "schema": 1,
        "cells": len(seconds),
        "start": round(start, 1),
        "usual": round((spent / len(seconds)) + more, 4),
        "kinds": {kind: round(mean, 4) for kind, mean in sorted(kinds.items())},
        "cases": {
            case: round(one, 2)
            for case, one in sorted(factors.items())
            if not USUAL[0] <= one <= USUAL[1]
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    folder = parser.parse_args().folder
    run = RunFile.read(folder)
    found = costs(measured(folder), start_of(folder), float(run.seconds or 0), run.processes)
    write_text(COSTS_FILE, json.dumps(found, indent=1) + "\n")
    print(f"{COSTS_FILE.name}: {found['cells']} cells")


if __name__ == "__main__":
    main()
