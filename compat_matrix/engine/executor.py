"""The executor, which turns cells of a plan into results.

The pytest collector and the in-process loop both call it.
"""

from __future__ import annotations

import functools
import itertools
import traceback
from collections.abc import Callable
from pathlib import Path

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import RESULTS_FILE, Cell, Plan, is_complete
from compat_matrix.cells.results import Observation, Result, of_plan, read_results
from compat_matrix.checks import NotExecuted, outcome_of_error
from compat_matrix.engine.second_tries import SecondTries
from compat_matrix.verdict import Ledger, agreement, second_try


class Executor:
    """Execute cells of one plan in one output folder, and judge the results.

    Args:
      out: the output folder.
      plan, ledger: of the run.
      observe: makes an observation of a cell. If it raises `checks.NotExecuted`, the cell is
        NOT_RUN; an error of the machine is an ENV_ERROR, any other exception a SETUP_ERROR.
      replay: gives the command line that executes a cell again.
      interruptions: exceptions that end the run instead of becoming a result.
      foretell: adds to an observed result what is predicted of its cell.
      second_tries: execute a cell with an unexpected result once more.
    """

    def __init__(
        self,
        out: Path,
        plan: Plan,
        ledger: Ledger,
        observe: Callable[[Cell], Observation],
        replay: Callable[[Cell], str],
        interruptions: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
        foretell: Callable[[Cell, Result], object] | None = None,
        second_tries: SecondTries | None = None,
    ) -> None:
        self.out, self.plan, self.ledger, self._second_tries = out, plan, ledger, second_tries
        self._observe, self._replay, self._interruptions, self._foretell = (
            observe,
            replay,
            interruptions,
            foretell,
        )
        self.productions = {
            cell.artifact_id: cell for cell in plan if cell.is_production and not cell.decided
        }
        self._failed: dict[str, str] = {}  # artifact -> why it was not made
        sides = itertools.chain.from_iterable(cell.sides for cell in plan)
        self._compared = {side.id for side in sides}
        self._sides: dict[str, Result] = {}  # results of these

    def execute(self, cell: Cell) -> Result:
        """Return the judged result of a cell: decided by the plan, NOT_RUN because its artifact was
        not made, or observed.

        An unexpected result is that of two tries, if there are second tries.
        """
        result = self._judged(cell, self._interrupted(cell) or self._executed(cell))
        if self._second_tries is not None and not cell.sides and second_try.due(result):
            result = self._second_tries.make(
                cell, result, lambda: self._judged(cell, self._observed(cell))
            )
        if cell.id in self._compared:
            self._sides[cell.id] = result
        if cell.is_production and result.outcome.gate_failure:
            self._failed[cell.artifact_id] = _why(result)
        return result

    def _judged(self, cell: Cell, result: Result) -> Result:
        return self.ledger.judged(cell, result) if result.outcome.observable else result

    def _interrupted(self, cell: Cell) -> Result | None:
        """Return the first try of a cell whose second try was interrupted in an earlier session."""
        if self._second_tries is None or cell.decided or cell.sides:
            return None
        return self._second_tries.interrupted(cell, self.plan.plan_id)

    def _executed(self, cell: Cell) -> Result:
        if cell.decided:
            return self._not_executed(cell, cell.decided.reason, cell.decided.outcome)
        not_made = self._not_made(cell)
        if not_made:
            return self._not_executed(cell, f"producer failed: {not_made}")
        return self._observed(cell)

    def _observed(self, cell: Cell) -> Result:
        try:
            seen = self._agreement(cell) if cell.sides else self._observe(cell)
            if not isinstance(seen, Observation):
                raise TypeError(f"a check must return an Observation, not {type(seen).__name__}")
        except self._interruptions:
            raise
        except NotExecuted as reason:
            return self._not_executed(cell, str(reason))
        except BaseException as error:  # also SystemExit: one cell must not end the run
            seen = self._setup_error(cell, error)
        result = Result.observed(
            self.plan.plan_id, cell.id, seen, self._replay(cell), self._places(cell, seen.message)
        )
        if self._foretell is not None and not cell.sides:
            self._foretell(cell, result)
        return result

    def _agreement(self, cell: Cell) -> Observation:
        """Compare two cells that this or an earlier process has executed.

        Raises NotExecuted if one has no result.
        """
        if any(side.id not in self._sides for side in cell.sides):
            self._sides = {**self._results_before(), **self._sides}
        seen = agreement.observe(cell, self._sides)
        if isinstance(seen, str):
            raise NotExecuted(seen)
        return seen

    def _not_executed(self, cell: Cell, reason: str, outcome: Outcome = Outcome.NOT_RUN) -> Result:
        return Result.not_executed(
            self.plan.plan_id, cell.id, outcome, reason, self._places(cell, reason)
        )

    def _places(self, cell: Cell, message: str) -> set[Path]:
        """Return the folders that a message about a cell may name; they are looked up only if there
        is one.
        """
        if not message:
            return set()
        artifact = cell.artifact_dir(self.out)
        return {self.out.absolute(), self.out.resolve(), artifact.absolute(), artifact.resolve()}

    def _setup_error(self, cell: Cell, error: BaseException) -> Observation:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        folder = self.out / "evidence" / cell.id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "harness_traceback.txt").write_text(text, encoding="utf-8", errors="replace")
        return Observation(
            outcome_of_error(error),
            error_class=f"{type(error).__module__}.{type(error).__qualname__}",
            message=str(error),
            evidence={"traceback": f"evidence/{cell.id}/harness_traceback.txt"},
        )

    def stands(self, production: Cell) -> bool:
        """Return whether an earlier session has made an artifact and recorded it."""
        return production.artifact_id in self._produced_before and is_complete(
            production.artifact_dir(self.out)
        )

    def settled(self, production: Cell) -> bool:
        """Return whether an earlier session of a plan over many runtimes has executed a
        production.
        """
        if not self.plan.in_phases:
            return False
        return self.stands(production) or self._failed_before(production.artifact_id) is not None

    def _not_made(self, cell: Cell) -> str | None:
        """Return why this process or an earlier session did not make the artifact of a cell."""
        if (
            cell.is_production
            or cell.artifact_id not in self.productions
            or is_complete(cell.artifact_dir(self.out))
        ):
            return None
        return self._failed.get(cell.artifact_id) or self._failed_before(cell.artifact_id)

    @functools.cached_property
    def _produced_before(self) -> dict[str, Result]:
        """Return artifact -> the result of its production in an earlier session on this folder.

        An artifact without a result was made by a session that was killed before it wrote the line.
        """
        results = self._results_before()
        found = {
            artifact: results.get(production.id)
            for artifact, production in self.productions.items()
        }
        return {
            artifact: result
            for artifact, result in found.items()
            if result and result.outcome.observable
        }

    def _results_before(self) -> dict[str, Result]:
        return of_plan(read_results(self.out / RESULTS_FILE), self.plan)

    def _failed_before(self, artifact: str) -> str | None:
        """Return why an earlier session on this folder could not make an artifact."""
        result = self._produced_before.get(artifact)
        return _why(result) if result and result.outcome.gate_failure else None


def _why(result: Result) -> str:
    return f"{result.outcome} {result.error_class or ''}: {result.message[:300]}"
