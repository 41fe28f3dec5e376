"""A session of checks: its workers stay warm from one export to the next, and each export has a
folder with evidence.
"""

from __future__ import annotations

import datetime
import functools
import io
import itertools
import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from compat_matrix.cells.consumers import CONSUMERS, CPP, Consumer
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import PLAN_FILE, Cell, Decision, Plan
from compat_matrix.cells.registry import PluginError, Registry
from compat_matrix.cells.results import Observation, Result
from compat_matrix.cells.run_file import RunFile
from compat_matrix.checks import CHECKS, NotExecuted
from compat_matrix.engine import running
from compat_matrix.engine.loop import run_plan
from compat_matrix.engine.predict import Predictor
from compat_matrix.engine.result_log import ResultLog
from compat_matrix.exports import still
from compat_matrix.exports.options import ALL, ANSWERING, FORMAT, STILL, Options
from compat_matrix.exports.report import Report, compared
from compat_matrix.hosts.pool import Hosts
from compat_matrix.plan.made_programs import make_programs
from compat_matrix.plan.planning import Axes, cell_of, expand, fixture_artifact
from compat_matrix.plugins import found
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.report.terminal import NOT_COMPARED
from compat_matrix.requests.given import Export, Prepared, prepare, unreadable
from compat_matrix.requests.policies import OptionError
from compat_matrix.requests.recorder import readers_of
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.runtime import LOCAL, Runtime, local_runtime
from compat_matrix.verdict import NO_ENTRIES, Ledger
from reference_impl.errors import NotASavedModelError, SavedModelError, about_the_model
from savedmodel_common.own_version import tool_version
from savedmodel_common.placing import Unstageable
from savedmodel_common.sole_writer import LOCK_FILE
from savedmodel_common.writing import write_text

INTERRUPTED = "interrupted"
NO_FINGERPRINT = "the export has no fingerprint.pb"


class Session:
    """Check exports, one or many at a time; a context manager that ends the workers.

    ``folder`` receives the logs of the workers. With ``warm`` the workers of every runtime are
    kept, else those of one runtime at a time, which suffices for a command that asks the runtimes
    in turn. The ``pyproject.toml`` of ``home`` (None: of the current folder) may declare
    third-party consumers.
    """

    def __init__(self, folder: Path, warm: bool = False, home: Path | None = None) -> None:
        self.hosts = Hosts(folder, warm)
        self.home = home
        self._registries: dict[tuple[tuple[str, ...], Path | None], Registry] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and servers."""
        self.hosts.close()

    def check(
        self,
        exports: Sequence[Export],
        options: Options,
        out: Path,
        start: Callable[[int], object] = int,
        advance: Callable[[Result], object] = repr,
    ) -> Report:
        """Check exports and write all files below ``out``, a new folder.

        Args:
          start, advance: are called with the number of cells to run, and with each result.

        Raises:
          OptionError, PlanError, LedgerError: the options are not valid.
          NotASavedModelError: an export is not a SavedModel. RuntimeTrouble: a runtime is not
            installed.
        """
        registry = self.hosts.registry = self._registered(options)
        consumers = {name: registry.consumers[name] for name in options.names(registry)}
        runtimes = asked_runtimes(options)
        self.hosts.know(runtimes)
        self.hosts.tolerance = options.tolerance[:2] if options.tolerance else None
        text = ledger_text(options.expectations or NO_ENTRIES, registry)
        ledger = Ledger.parse(text)
        taken: set[str] = set()
        readers = readers_of(runtimes, consumers)
        given = out / running.GIVEN_FOLDER
        asked = (options.policy, given, self.hosts.of, readers, taken, options.tolerance)
        prepared = []
        for export in exports:
            try:
                prepared.append(prepare(export, *asked))
            except (SavedModelError, Unstageable) as error:
                if isinstance(error, NotASavedModelError) or not (
                    isinstance(error, Unstageable) or about_the_model(error)
                ):
                    raise
                prepared.append(
                    unreadable(export, given, taken, error)
                )  # the others are checked all the same
        plan = plan_of(prepared, consumers, runtimes, options, ledger, str(tool_version() or 0))
        running.lay_out(out, plan, text, registry)
        make_programs(plan, {cell.id for cell in plan if not cell.decided}, runtimes, registry)
        named = options.named_axes(runtimes)
        RunFile.of_now(require=options.require, runtimes=runtimes, named=named).write(out)
        start(sum(not cell.decided for cell in plan))
        log = ResultLog(out, plan)
        of_case = {str(item.directory): item for item in prepared}
        observers = {
            FORMAT: lambda cell: still.observe(cell.check, of_case[cell.artifact], options),
            ALL: lambda cell: _together(plan, cell, of_case[cell.artifact], log.results),
        }

        def replay(cell: Cell) -> str:
            return self._replay(cell, of_case[cell.artifact], options)

        try:
            for result in run_plan(
                self.hosts, out, plan, ledger, observers, replay, _foreteller(out, plan)
            ):
                if not plan.by_id[result.cell].decided:
                    log.add(result)
                    advance(result)
        finally:
            log.close(lambda _: INTERRUPTED)
        report = Report(out, prepared, plan, log.results, {})
        write_text(out / running.ABOUT_FILE, json.dumps(report.about(), indent=1) + "\n")
        summary = running.report(out, Console(file=io.StringIO()), datetime.date.today())
        return replace(report, summary=summary)

    def _registered(self, options: Options) -> Registry:
        """Return the registry with the requested plug-ins.

        Each plug-in was started once to report what it is.
        """
        key = (options.consumers, options.plugins)
        if key not in self._registries:
            try:
                self._registries[key] = found.registry(
                    found.Asked(options.consumers, (), options.plugins), self.home
                )
            except PluginError as error:
                raise OptionError(str(error)) from error
        return self._registries[key]

    def _replay(self, cell: Cell, item: Prepared, options: Options) -> str:
        """Return the command line that repeats one check, with the same requests and answers."""
        words = [
            "savedmodel-compat",
            "check",
            item.name if item.refused else str(item.directory),
            "--check",
            cell.check,
        ]
        if options.tolerance:  # what the artifact states counts up to a limit only
            words += ["--tolerance", "{:g} {:g} {}".format(*options.tolerance)]
        runtime = self.hosts.runtimes.get(cell.runtime)
        if cell.is_served and runtime:
            words += ["--server", runtime.spec]
        elif cell.consumer not in (FORMAT, ALL):
            given = {word.partition("=")[0]: word for word in options.consumers}
            names = [side.consumer for side in cell.sides] or [cell.consumer]
            words += (
                ["--plugins", str(options.plugins)]
                if options.plugins and not {*names} <= {*CONSUMERS}
                else []
            )
            for name in names:
                words += ["--consumer", given.get(name, name)]
            if runtime and runtime.name != LOCAL:
                words += ["--runtime", runtime.spec]
        return shlex.join(words)


def _foreteller(out: Path, plan: Plan) -> Callable[[Cell, Result], None]:
    """Return a function that adds the prediction of the op history to results of TensorFlows other
    than the local one, and to failures of the local one whose cause the history knows.

    The check ignores the prediction in its verdict: an export that does not load fails, predicted
    or not.
    """

    @functools.cache
    def predictor() -> Predictor:
        return Predictor(out, (cell.consumer_version for cell in plan))

    def tell(cell: Cell, result: Result) -> None:
        if cell.runtime != LOCAL:
            predictor().tell(cell, result)
        elif result.outcome.may_be_skew and not result.skew:
            predictor().explain(cell, result)

    return tell


def asked_runtimes(options: Options) -> tuple[Runtime, ...]:
    """Return the runtimes: the local one if it can be asked or is the only one, those that were
    named, and the servers.

    Raises RuntimeTrouble for a runtime that is unknown or not installed, OptionError for a server
    that is not valid.
    """
    from compat_matrix.runtimes.resolve import resolve_labelled

    here = local_runtime()
    named = list(itertools.chain.from_iterable(map(resolve_labelled, options.tensorflow)))
    others = [runtime for runtime in named if runtime.name != LOCAL]
    if options.servers:
        from compat_matrix.hosts.servers import runtimes_of

        try:
            others += runtimes_of(options.servers)
        except ValueError as error:
            raise OptionError(str(error)) from error
    wanted = (
        here.tensorflow_version or not others or any(runtime.name == LOCAL for runtime in named)
    )
    return (here, *others) if wanted else tuple(others)


def _together(plan: Plan, cell: Cell, item: Prepared, results: Mapping[str, Result]) -> Observation:
    """Observe ``compared``, or ``asked``, which the plan decides unless every signature can be
    asked.
    """
    if cell.check == "asked":
        return Observation(Outcome.PASS)
    answers = [
        results[other.id]
        for other in plan
        if other.artifact == cell.artifact and other.check in ANSWERING
    ]
    count, reason = compared(plan, answers, item)
    if not count:
        raise NotExecuted(f"{NOT_COMPARED}{reason}")
    return Observation(Outcome.PASS, details={"answers": count})


def clear(out: Path, keep: Sequence[Path]) -> None:
    """Empty the folder of an earlier run.

    Raises OptionError if it holds other files or the export to be checked.
    """
    files = [path for path in out.iterdir() if path.name != LOCK_FILE] if out.is_dir() else []
    if files and not (out / PLAN_FILE).is_file():
        raise OptionError(f"{out} holds files that are not from a run; choose another folder")
    inside = [path for path in keep if path.resolve().is_relative_to(out.resolve())]
    if inside:
        raise OptionError(
            f"{inside[0]} lies in the output folder, which is emptied; choose another folder"
        )
    for path in files:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def plan_of(
    prepared: Sequence[Prepared],
    consumers: Mapping[str, Consumer],
    runtimes: Sequence[Runtime],
    options: Options,
    ledger: Ledger,
    tool: str,
) -> Plan:
    """Return all cells for ``prepared``; ``tool``: the version of this project. Raises PlanError
    for names that do not fit into a cell id."""
    limit = None if options.limit == Options.limit else options.limit
    refused = [fixture_artifact(item.directory) for item in prepared if item.refused]
    prepared = [item for item in prepared if not item.refused]
    artifacts = [replace(fixture_artifact(item.directory), timeout=limit) for item in prepared]
    examined = tuple(
        r if r.server or CPP not in consumers else native.examined(r, CPP) for r in runtimes
    )
    asked = tuple(check for check in CHECKS if options.makes(check))
    plan = expand(
        artifacts,
        consumers,
        {name: CHECKS[name] for name in asked},
        Axes(examined, checks=asked),
        ledger,
    )
    cells = [
        cell_of(artifact, FORMAT, tool, "inspect", LOCAL, None) for artifact in refused
    ]  # whatever was to be checked
    for item, artifact in zip(prepared, artifacts):
        cells += [
            cell_of(artifact, FORMAT, tool, check, LOCAL, _decided(check, item))
            for check in STILL
            if options.makes(check)
        ]
    cells += [cell for cell in plan if options.makes(cell.check)]
    compares = any(options.makes(check) for check in ANSWERING)
    for item, artifact in zip(prepared, artifacts):
        if options.makes("asked"):
            # NOT_RUN is not a failure of the export unless ``require`` is set.
            left_out = (
                Decision(Outcome.NOT_RUN, "; ".join(item.left_out)) if item.left_out else None
            )
            cells.append(cell_of(artifact, ALL, tool, "asked", LOCAL, left_out))
        if (
            options.makes("compared") or compares
        ):  # never left out: a check that compared nothing must not pass
            cells.append(cell_of(artifact, ALL, tool, "compared", LOCAL, None))
    return Plan(tuple(cells), narrowed=True)


def _decided(check: str, item: Prepared) -> Decision | None:
    if check == "fingerprint" and not (item.directory / "model" / "fingerprint.pb").is_file():
        return Decision(Outcome.NOT_APPLICABLE, NO_FINGERPRINT)
    return None
