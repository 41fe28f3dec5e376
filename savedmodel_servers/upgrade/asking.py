"""The four pairs of a server and an export: cells of an ordinary plan, run by the engine, and their
verdicts.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import RESULTS_FILE, Cell, Plan, is_complete
from compat_matrix.cells.results import Result, of_plan, read_results
from compat_matrix.engine import running
from compat_matrix.plan.planning import Axes, make_plan, plan_of
from compat_matrix.requests.artifact import Artifact, read_artifact
from compat_matrix.requests.given import as_artifact
from compat_matrix.requests.policies import SWITCHED
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import NO_ENTRIES, Ledger
from savedmodel_servers.upgrade.sides import Place

PRODUCER = "tf2"  # the producer that writes a case: tf.saved_model.save
LOADING = "serve"  # the check that compares no answers
NOT_REPRESENTABLE = (  # JSON cannot represent any request: the pair is not at fault
    "NotRepresentable"
)


@dataclass(frozen=True)
class Pair:
    """One server with one export of one model."""

    model: str
    place: Place
    failed: str = ""  # why it does not work
    unknown: str = ""  # why the result is unknown
    trouble: bool = False  # the machine or the harness caused that
    compared: tuple[str, ...] = ()  # checks that compared answers
    silent: bool = False  # the result is unknown only because the export has no answer on record

    def to_json(self) -> dict[str, Any]:
        facts = {
            "model": self.model,
            "server": self.place.server,
            "export": self.place.export,
            "works": self.works,
        }
        return {**facts, "reason": self.failed or self.unknown, "compared": list(self.compared)}

    @property
    def works(self) -> bool | None:
        if self.failed:
            return False
        return None if self.unknown else True


@dataclass
class Asked:
    """The result: the pairs, the exports of each model by side (if they could be made), and the
    omissions with reasons.
    """

    pairs: list[Pair] = field(default_factory=list)
    exports: dict[str, dict[str, Artifact]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def of_cases(
    out: Path,
    cases: Sequence[str],
    exporters: Mapping[str, Runtime],
    servers: Mapping[str, Runtime],
) -> Asked:
    """Write the cases (names, or patterns with ``*``) with the old and the new TensorFlow; query
    both servers with both exports.

    Raises PlanError, RunError.
    """
    text = NO_ENTRIES.read_text(encoding="utf-8")
    runtimes = (*exporters.values(), *servers.values())
    plan = make_plan(
        Ledger.parse(text), None, None, Axes(runtimes, served_only=True), (PRODUCER,), cases
    )
    side = {runtime.name: one for one, runtime in exporters.items()}
    exports = {cell.id: side[cell.producer_runtime] for cell in plan}
    results = _run(out, plan, runtimes, text, {"case": cases})
    asked = Asked()
    _take(asked, out, plan, results, servers, exports)
    _leave_out_what_has_no_way(asked, plan)
    return asked


def of_exports(out: Path, exports: Mapping[str, Path], servers: Mapping[str, Runtime]) -> Asked:
    """Query both servers with two exports of one model: artifacts, or SavedModels with generated
    requests.

    Raises PlanError, RunError, ArtifactError, Unstageable, SavedModelError.
    """
    text = NO_ENTRIES.read_text(encoding="utf-8")
    asked = Asked()
    for side, path in exports.items():
        folder = out / f"{side}-export"
        given = as_artifact(path, folder / running.GIVEN_FOLDER, SWITCHED)
        asked.left_out += [f"{side} export: {line}" for line in given.left_out]
        axes = Axes(tuple(servers.values()), served_only=True)
        plan = plan_of(given.directory, axes)
        results = _run(folder, plan, axes.runtimes, text)
        _take(asked, folder, plan, results, servers, dict.fromkeys(plan.by_id, side), "model")
    return asked


def _run(
    out: Path,
    plan: Plan,
    runtimes: Sequence[Runtime],
    ledger: str,
    selectors: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, Result]:
    chosen = running.select(plan, selectors, ())  # rejects a name that no cell has
    running.carry_out(
        out, running.Order(plan, chosen, ledger, runtimes, processes=1), Console(file=io.StringIO())
    )
    return of_plan(read_results(out / RESULTS_FILE), plan)


def _take(
    asked: Asked,
    out: Path,
    plan: Plan,
    results: Mapping[str, Result],
    servers: Mapping[str, Runtime],
    exports: Mapping[str, str],
    model: str = "",
) -> None:
    """Add the pairs of a plan, and its artifacts; ``exports``: cell id -> side; ``model``: its
    name, in place of the case's.
    """
    names = {runtime.name: side for side, runtime in servers.items()}
    cells: dict[tuple[str, Place], list[Cell]] = {}
    for cell in plan:
        if cell.is_served:
            export = exports[cell.id]
            cells.setdefault((model or cell.case, Place(names[cell.runtime], export)), []).append(
                cell
            )
            directory = cell.artifact_dir(out)
            if is_complete(directory):
                asked.exports.setdefault(model or cell.case, {})[export] = read_artifact(directory)
    for (name, place), group in cells.items():
        asked.pairs.append(judged(name, place, [(cell, results.get(cell.id)) for cell in group]))


def _leave_out_what_has_no_way(asked: Asked, plan: Plan) -> None:
    """Remove, and name, the cases that one of the TensorFlows does not write, and those without a
    question for any server.
    """
    for case in sorted({cell.case for cell in plan}):
        cells = [cell for cell in plan if cell.case == case]
        answering = [cell for cell in cells if cell.is_served and cell.check != LOADING]
        if len({cell.producer_runtime for cell in answering}) < 2:
            reasons = sorted(
                {cell.decided.reason for cell in cells if cell.is_production and cell.decided}
            )
            why = f"not both TensorFlows write it ({'; '.join(reasons) or 'no reason is known'})"
        elif all(
            cell.decided and cell.decided.outcome is Outcome.NOT_APPLICABLE for cell in answering
        ):
            why = f"a server cannot be asked about it ({answering[0].decided.reason})"  # type: ignore[union-attr]
        else:
            continue
        asked.left_out.append(f"{case}: {why}")
        asked.pairs = [pair for pair in asked.pairs if pair.model != case]
        asked.exports.pop(case, None)


def _outcome_of(cell: Cell, result: Result | None) -> tuple[Outcome, str]:
    """Return the outcome of a cell and its message; that of the plan for one without a result."""
    if result:
        return result.outcome, result.message
    if cell.decided:
        return cell.decided.outcome, cell.decided.reason
    return Outcome.NOT_RUN, "it was not asked"


def judged(model: str, place: Place, answers: Sequence[tuple[Cell, Result | None]]) -> Pair:
    """Return the pair with the verdict of its cells' results."""
    failed = unknown = ""
    trouble = False
    compared: list[str] = []
    for cell, result in answers:
        outcome, said = _outcome_of(cell, result)
        if outcome is Outcome.PASS:
            compared += [cell.check] if result and result.details.get("answers") else []
        elif outcome is Outcome.NOT_APPLICABLE or (
            result and result.error_class == NOT_REPRESENTABLE
        ):
            continue
        elif outcome is Outcome.NOT_RUN or outcome.harness_failure:
            unknown, trouble = (
                unknown or f"{cell.check}: {said}",
                trouble or outcome.harness_failure,
            )
        else:
            failed = failed or f"{cell.check}: {outcome}: {said}"
    silent = not failed and not unknown and not compared
    if silent:
        unknown = "no answer was compared: none is on record"
    return Pair(model, place, failed, unknown, trouble, tuple(compared), silent)
