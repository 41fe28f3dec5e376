"""A folder as a run leaves it, made without running anything, and what the harness writes from
it.
"""

from __future__ import annotations

import datetime
import io
from pathlib import Path

from rich.console import Console

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import LEDGER_FILE, PLAN_FILE, RESULTS_FILE, Cell, Plan
from compat_matrix.cells.results import Observation, Result, write_results

DAY = datetime.date(2025, 6, 1)
CHECKS = ("load", "signatures", "values", "relocate")


def plan() -> Plan:
    """Four questions about two artifacts each."""
    return Plan(
        tuple(
            Cell(
                case,
                "tf2",
                "2.99.0",
                "reference",
                "2.99.0",
                check,
                "local",
                f"artifacts/{case}/tf2@2.99.0",
                "local",
            )
            for case in ("alpha", "beta")
            for check in CHECKS
        )
    )


def finished_run(out: Path, failing: int) -> None:
    """The files of a run in which so many cells failed."""
    out.mkdir(parents=True, exist_ok=True)
    made = plan()
    made.write(out / PLAN_FILE)
    failed = Observation(Outcome.CALL_ERROR, "x.NotFoundError", "no op Foo")
    passed = Observation(Outcome.PASS)
    cells = enumerate(made)
    write_results(
        out / RESULTS_FILE,
        [
            Result.observed(made.plan_id, cell.id, failed if at < failing else passed)
            for at, cell in cells
        ],
    )
    if not (out / LEDGER_FILE).exists():
        (out / LEDGER_FILE).write_text("schema = 1\n", encoding="utf-8")


def report(out: Path) -> None:
    """`matrix report`."""
    from compat_matrix.engine import running

    running.report(out, Console(file=io.StringIO(), width=120), DAY)


def expect_update(out: Path) -> None:
    """`matrix expect update`."""
    from compat_matrix.commands.parts.expect import expect_update as command

    arguments = [
        str(out),
        "--expectations",
        str(out / LEDGER_FILE),
        "--reason",
        "the op is not there",
    ]
    command.main(arguments, standalone_mode=False)
