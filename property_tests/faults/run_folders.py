"""Faults in the folder of a run, which `matrix report` and `gate` judge without running
anything.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compat_matrix.cells.results import DESELECTED
from property_tests.faults.declaring import Fault
from property_tests.faults.found_by.command import Command
from property_tests.faults.planting import Plant
from property_tests.faults.scenes import (
    FAILED_RUN,
    RUNS,
    TOLERANT_RUN,
    TOLERANT_RUNS,
    savedmodel_compat,
)

REPORT = "matrix report run"
GATE = "gate compare run other --out gate"
DRIFT = f"{GATE} --fail-on-drift"
Lines = list[dict[str, Any]]


def results(change: Callable[[Lines], Lines], run: str = "run") -> Plant:
    """The results of a run are others."""

    def plant(folder: Path) -> None:
        path = folder / run / "results.jsonl"
        lines = change([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    return plant


def _observed(line: dict[str, Any]) -> bool:
    return line["outcome"] not in ("NOT_RUN", "NOT_APPLICABLE")


def _lose(lines: Lines) -> Lines:
    lines.remove(
        next(line for line in lines if line["cell"].endswith("/values") and _observed(line))
    )
    return lines


def _add(lines: Lines) -> Lines:
    good = next(filter(_observed, lines))
    return [*lines, {**good, "cell": good["cell"].replace("c_api@", "cpp@")}]


def _half(lines: Lines) -> Lines:
    observed = [line for line in lines if _observed(line)]
    return [line for line in lines if line not in observed[len(observed) // 2 :]]


def _deselect(lines: Lines) -> Lines:
    """Cells that were not reached are told as if nobody had asked for them."""
    lost = [line for line in lines if _observed(line)][1:]
    told = {"outcome": "NOT_RUN", "message": DESELECTED, "expected": None}
    pattern = next(line for line in lines if line["message"] == DESELECTED)
    return [{**pattern, "cell": line["cell"], **told} if line in lost else line for line in lines]


def _pass_again(lines: Lines) -> Lines:
    """Behind a failure stands a second line of the cell, with a pass."""
    bad = next(line for line in lines if line["outcome"] == "FAIL_VALUE")
    good = next(line for line in lines if line["outcome"] == "PASS")
    return [*lines, {**good, "cell": bad["cell"]}]


def _expected(lines: Lines) -> Lines:
    return [{**line, "expected": True} if line["expected"] is False else line for line in lines]


def _nan(lines: Lines) -> Lines:
    good = next(filter(_observed, lines))
    good["timings"] = {"load": float("nan")}
    return lines


def _of_another(folder: Path) -> None:
    (folder / "run" / "results.jsonl").write_bytes(
        (folder / "other" / "results.jsonl").read_bytes()
    )


def _smaller_plan(folder: Path) -> None:
    """A cell is lost from the plan and from the results."""
    path = folder / "run" / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    cells = plan["cells"]
    cells.remove(
        next(
            cell
            for cell in cells
            if (cell["id"] if "id" in cell else str(cell)).endswith("/values")
        )
    )
    path.write_text(json.dumps(plan), encoding="utf-8")


def _drift(folder: Path) -> None:
    """The candidate was run with a loader whose weights are one unit in the last place away."""
    (folder / "fault").write_text("last_bit")
    shutil.rmtree(folder / "other")
    assert savedmodel_compat(folder, TOLERANT_RUN.format("other")).returncode == 0


ROWS = (
    Fault(
        "lost-cell",
        "a cell is lost from the results",
        results(_lose),
        Command(RUNS, REPORT, 3, "did not come to its end"),
        gate=True,
    ),
    Fault(
        "added-cell",
        "the results have a cell that is not in the plan",
        results(_add),
        Command(RUNS, REPORT, 4, "did not write this result"),
    ),
    Fault(
        "duplicated-cell",
        "a failure is followed by a pass of the same cell",
        results(_pass_again),
        Command(FAILED_RUN, REPORT, 4, "did not write this result", sound=1),
    ),
    Fault(
        "interrupted-run",
        "half of the results are there, beside the summary of all",
        results(_half),
        Command(RUNS, REPORT, 3, "did not come to its end"),
    ),
    Fault(
        "claimed-completeness",
        "cells that were not reached are told as deselected",
        results(_deselect),
        Command(RUNS, REPORT, 4, "did not write this result"),
        gate=True,
    ),
    Fault(
        "failure-marked-expected",
        "the results call a failure expected",
        results(_expected),
        Command(FAILED_RUN, REPORT, 4, "did not write this result", sound=1),
    ),
    Fault(
        "nan-in-results",
        "a number of the results is NaN",
        results(_nan),
        Command(RUNS, REPORT, 4, "NaN"),
    ),
    Fault(
        "results-of-another-run",
        "the results are those of another run",
        _of_another,
        Command(RUNS, REPORT, 4, "did not write this result"),
    ),
    Fault(
        "smaller-plan",
        "a cell is lost from the plan",
        _smaller_plan,
        Command(RUNS, REPORT, 4, "plan.json"),
    ),
    Fault(
        "drift",
        "answers of a gate's candidate differ within the tolerance, where they should be equal",
        _drift,
        Command(TOLERANT_RUNS, DRIFT, 1, r"drifted, 1 pair: \S.* ulp"),
    ),
    Fault(
        "unfinished-candidate",
        "a cell is lost from the results of a gate's candidate",
        results(_lose, "other"),
        Command(RUNS, GATE, 3, "unfinished"),
    ),
    Fault(
        "edited-baseline",
        "the results of a gate's baseline were edited",
        results(_deselect),
        Command(RUNS, GATE, 4, "did not write this result"),
    ),
)
