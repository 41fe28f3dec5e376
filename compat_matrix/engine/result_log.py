"""``results.jsonl`` of a run: a flushed line as each cell ends. At the end the file is complete,
sealed and in the plan's order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import RESULTS_FILE, Cell, Plan
from compat_matrix.cells.results import Result, append_results, of_plan, read_results, write_results
from savedmodel_common.writing import naming


class ResultLog:
    """The results of one plan in one output folder, by cell.

    Existing results of the same plan are kept until their cell runs again. Results that the plan
    decides are added. Raises ResultsError for a file that cannot be used.
    """

    def __init__(self, out: Path, plan: Plan) -> None:
        self.plan, self.path = plan, out / RESULTS_FILE
        self.results = {
            name: result
            for name, result in of_plan(read_results(self.path), plan).items()
            if result.outcome is not Outcome.NOT_RUN
        }
        for cell in plan:
            if cell.decided:
                fields = (plan.plan_id, cell.id, cell.decided.outcome, cell.decided.reason)
                self.results[cell.id] = Result.not_executed(*fields)
        self._write_all()
        self._stream: IO[str] | None = append_results(self.path)

    def add(self, result: Result) -> None:
        """Write the result of a cell that has ended. Raises OSError, which names the file."""
        self.results[result.cell] = result
        if self._stream:
            with naming(self.path):
                self._stream.write(result.to_line() + "\n")
                self._stream.flush()

    def close(self, reason: Callable[[Cell], str]) -> None:
        """Write the whole file.

        ``reason`` says why a cell has no result; "" if a later session will add the result.
        """
        for cell in self.plan:
            why = reason(cell) if cell.id not in self.results else ""
            if why:
                self.results[cell.id] = Result.not_executed(
                    self.plan.plan_id, cell.id, Outcome.NOT_RUN, why
                )
        self.results = {
            cell.id: self.results[cell.id] for cell in self.plan if cell.id in self.results
        }
        if self._stream:
            with naming(self.path):
                self._stream.close()
            self._stream = None
            self._write_all()

    def _write_all(self) -> None:
        write_results(
            self.path, (self.results[cell.id] for cell in self.plan if cell.id in self.results)
        )
