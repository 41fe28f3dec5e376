"""A gate in a folder: run the cells of both runtimes, compare them, write the reports."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from compat_matrix.cells import registry as registries
from compat_matrix.cells.plan import NO_CONSUMER, PLAN_FILE, Cell, Plan
from compat_matrix.cells.registry import OURS, Registry
from compat_matrix.cells.run_file import RunFile
from compat_matrix.checks import READING
from compat_matrix.engine import running
from compat_matrix.engine.sessions import RunError
from compat_matrix.gate import quick
from compat_matrix.gate.compare import compare
from compat_matrix.gate.drift import drifts
from compat_matrix.gate.pairs import Pair, Run, pairs_of_folders, pairs_of_run
from compat_matrix.plan.planning import Axes, make_plan
from compat_matrix.report import gate_html, gate_junit, gate_markdown, gate_terminal
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import Ledger, referee
from reference_impl.format.container.files import shown
from savedmodel_common import interrupts
from savedmodel_common.printable import like
from savedmodel_common.writing import write_set

RUN_FOLDER = "run"
JSON_FILE, MARKDOWN_FILE, HTML_FILE, JUNIT_FILE = "gate.json", "gate.md", "gate.html", "junit.xml"
REPORTS = (JSON_FILE, MARKDOWN_FILE, HTML_FILE, JUNIT_FILE)
CANDIDATE = "candidate"  # the label of a candidate with the same version as the baseline
# Every check that writes nothing: a fault of a loader must not stay green because it was not asked.
# The others write every model anew for each pair of releases, and mostly show the same as a run of
# one release (matrix run).
DEFAULT_CHECKS = READING
# Cases that deliberately crash or hang the consumer. They test the harness, not a release, and take
# minutes.
LEFT_OUT = "fault_*"
# Runs the generators of the committed TF 1.x fixtures; both releases write these too.
PRODUCED_TOO = ("v1_builder",)


@dataclass(frozen=True)
class Scope:
    """The cells that a gate runs."""

    checks: Sequence[str] = DEFAULT_CHECKS
    selectors: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # axis (case, producer, consumer) -> patterns
    fixtures: Path | None = None  # a folder in place of ours
    cases: Path | None = None  # a folder in place of ours
    registry: Registry = OURS  # of producers and consumers
    options: Sequence[str] = ()  # of ``matrix run``, for the same plan
    # only the models, producers and consumers of :mod:`.quick`, where nothing is selected
    quick: bool = False
    named: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # on the command line, beside the selectors


def told_apart(baseline: Runtime, candidate: Runtime) -> tuple[Runtime, Runtime]:
    """Return both runtimes; the candidate gets a label if their names or versions are equal."""
    if (
        candidate.name == baseline.name
        or candidate.tensorflow_version == baseline.tensorflow_version
    ):
        candidate = candidate.labelled(CANDIDATE)
    return baseline, candidate


def plan_of(runtimes: Sequence[Runtime], scope: Scope, ledger: Ledger) -> Plan:
    """Plan that both runtimes write and read everything. Raises PlanError."""
    axes = Axes(tuple(runtimes), checks=tuple(scope.checks))
    registry = scope.registry
    return make_plan(
        ledger, scope.fixtures, scope.cases, axes, registry.planned(PRODUCED_TOO), registry=registry
    )


def execute(
    out: Path,
    runtimes: tuple[Runtime, Runtime],
    scope: Scope,
    ledger_text: str,
    *,
    resume: bool = False,
    processes: int | None = None,
    pytest_args: Sequence[str] = (),
) -> list[Pair]:
    """Run the cells of both runtimes in ``out/run`` and return the pairs. Raises the errors of
    ``running.carry_out``, and PlanError."""
    folder = out / RUN_FOLDER
    plan = plan_of(runtimes, scope, Ledger.parse(ledger_text))
    chosen = asked(plan, scope)
    if not chosen:
        raise RunError("nothing of the selection has to do with TensorFlow: no release changes it")
    order = running.Order(
        plan,
        chosen,
        ledger_text,
        runtimes,
        ("--all-checks", *scope.options),
        running.selection_of(scope.selectors),
        processes,
        resume,
        pytest_args=pytest_args,
        registry=scope.registry,
        named={**scope.selectors, **scope.named},
        folders=running.folders_of(scope.fixtures, scope.cases),
    )
    for name in REPORTS:  # of an earlier gate; there is no verdict until this one has compared
        (out / name).unlink(missing_ok=True)
    running.carry_out(folder, order, Console(quiet=True))  # the report of the run is in its folder
    versions = [runtime.tensorflow_version or "" for runtime in runtimes]
    return pairs_of_run(Run.read(folder), *versions)


def asked(plan: Plan, scope: Scope) -> set[str]:
    """Return the ids of the cells of a plan that the gate executes."""
    consumers = scope.selectors.get("consumer", ())
    selectors = {**scope.selectors, "consumer": [*consumers, NO_CONSUMER] if consumers else ()}
    chosen = running.select(plan, selectors, ())
    if scope.quick:
        chosen &= _quick(plan, scope)
    if scope.cases is None and not scope.selectors.get("case"):
        chosen -= {cell.id for cell in plan if fnmatch.fnmatchcase(cell.case, LEFT_OUT)}
    return _concerned(plan, chosen, scope.registry)


def _quick(plan: Plan, scope: Scope) -> set[str]:
    """Return the cells that ``--quick`` asks.

    An axis that the command line selects stays as it was selected.
    """
    names = quick.models(scope.fixtures, scope.cases)
    limits = {
        "case": names,
        "producer": set(quick.PRODUCERS),
        "consumer": {*quick.CONSUMERS, NO_CONSUMER},
    }
    chosen = list(plan)
    for axis, allowed in limits.items():
        if not scope.selectors.get(axis):
            chosen = [cell for cell in chosen if getattr(cell, axis) in allowed]
    return {cell.id for cell in chosen}


def _concerned(plan: Plan, chosen: set[str], registry: Registry) -> set[str]:
    """Return the ``chosen`` cells that a TensorFlow writes or reads, and the cells that they need.

    Others are not compared.
    """
    made = {cell.artifact_id for cell in plan if cell.is_production}
    own = {cell: registry.brings_version(cell) for cell in plan if cell.id in chosen}
    asked = {
        cell
        for cell, (writer, reader) in own.items()
        if not reader or (cell.artifact_id in made and not writer)
    }
    read = {cell.artifact_id for cell in asked if not cell.is_production}
    concerned = {
        cell.id
        for cell in asked
        if not cell.is_production or not own[cell][0] or cell.artifact_id in read
    }
    return concerned | _judged(plan, {cell for cell in asked if not own[cell][1]})


def _judged(plan: Plan, asked: set[Cell]) -> set[str]:
    """Return the cells in which the evaluator answers the requests that two TensorFlows answer."""
    answered = {cell.artifact_id for cell in asked if cell.check == referee.VALUES}
    return {
        cell.id
        for cell in plan
        if cell.consumer == referee.EVALUATOR
        and cell.check == referee.VALUES
        and cell.artifact_id in answered
        and not cell.decided
    }


def versions_of(
    folder: Path, baseline: str, candidate: str
) -> tuple[list[Pair], list[dict[str, str]]]:
    """Return the pairs of two TensorFlows of one run, given by version (2.3.4) or runtime (2.3 or
    tf2.3), and their names in reports.

    Raises UnknownVersion, PlanError, ResultsError.
    """
    run = Run.read(folder)
    known: dict[str, str] = {}
    for cell in run.plan:
        if cell.consumer_version and not run.registry.brings_version(cell)[1]:
            spellings = (cell.runtime, cell.runtime.removeprefix("tf"), cell.consumer_version)
            known |= dict.fromkeys(spellings, cell.consumer_version)
    for spec in (baseline, candidate):
        if spec not in known:
            raise UnknownVersion(
                f"{spec} is not in {folder}; there are:"
                f" {', '.join(sorted(set(known.values())))}.{like(spec, known)}"
            )
    sides = [side(known[spec], spec, folder) for spec in (baseline, candidate)]
    return pairs_of_run(run, known[baseline], known[candidate]), sides


class UnknownVersion(ValueError):
    """The run did not ask this TensorFlow."""


def folders(baseline: Path, candidate: Path) -> tuple[list[Pair], list[dict[str, str]]]:
    """Return the pairs of two result folders, and their names in reports.

    Raises PlanError, ResultsError.
    """
    runs = [Run.read(path) for path in (baseline, candidate)]
    labels = [_label(run, path) for run, path in zip(runs, (baseline, candidate))]
    if labels[0] == labels[1]:
        labels = [f"{label} ({path.name})" for label, path in zip(labels, (baseline, candidate))]
    sides = [side(label, str(path), path) for label, path in zip(labels, (baseline, candidate))]
    return pairs_of_folders(*runs), sides


def side(label: str, spec: str, folder: Path) -> dict[str, str]:
    """Return the names of one side for reports, and the folder of its run if other commands know
    its models only from there.
    """
    from_user = any(cell.producer == "given" for cell in Plan.read(folder / PLAN_FILE))
    is_ours = (
        RunFile.read(folder).is_about_ours
        and not any(registries.read(folder).theirs)
        and not from_user
    )
    return {"label": label, "spec": spec, **({} if is_ours else {"run": str(folder.resolve())})}


def _label(run: Run, path: Path) -> str:
    """Return the version of the run's TensorFlow, or the folder's name if there are several."""
    asked = (cell for cell in run.plan if not cell.is_production)
    versions = {cell.consumer_version for cell in asked if not run.registry.brings_version(cell)[1]}
    return versions.pop() if len(versions) == 1 else path.name


def is_folder(spec: str) -> bool:
    """Return whether a spec names the folder of a run rather than a runtime."""
    path = Path(spec)
    return (path / PLAN_FILE).is_file() or (
        path.is_dir() and "/" in spec and not (path / "bin").is_dir()
    )


def report(
    out: Path | None,
    pairs: Sequence[Pair],
    sides: Sequence[Mapping[str, str]],
    console: Console,
    *,
    fail_on_drift: bool = False,
    accept_known: bool = False,
    full: bool = False,
) -> dict[str, Any]:
    """Compare the pairs, write the reports to ``out`` (None: nowhere), print the verdict (with
    ``full``, every pair) and return it."""
    facts, verdict = compare(
        pairs, sides, drifts, fail_on_drift=fail_on_drift, accept_known=accept_known
    )
    interrupts.check()
    texts: dict[str, str] = {}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        texts = {
            HTML_FILE: gate_html.render(verdict),
            MARKDOWN_FILE: gate_markdown.render(verdict),
            JUNIT_FILE: gate_junit.of_gate(facts, verdict),
            JSON_FILE: json.dumps(verdict, indent=1) + "\n",
        }
        write_set(out, texts)
    gate_terminal.render(
        verdict, console, [shown(out / name) for name in texts] if out else (), full
    )
    return verdict
