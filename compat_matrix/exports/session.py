"""One session of checks: workers that stay warm from one export to the next, and a folder with the evidence of each."""

from __future__ import annotations

import datetime
import io
import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import PLAN_FILE, Cell, Plan
from compat_matrix.cells.registry import PluginError, Registry
from compat_matrix.cells.results import Observation, Result
from compat_matrix.cells.run_file import RunFile, tool_version
from compat_matrix.cells.sole_writer import LOCK_FILE
from compat_matrix.checks import NotExecuted
from compat_matrix.common.writing import write_text
from compat_matrix.engine import running
from compat_matrix.engine.loop import run_plan
from compat_matrix.engine.result_log import ResultLog
from compat_matrix.exports import still
from compat_matrix.exports.options import ALL, ANSWERING, FORMAT, Options
from compat_matrix.exports.planning import plan_of
from compat_matrix.exports.report import Report, compared
from compat_matrix.hosts.pool import Hosts
from compat_matrix.models.predict import Predictor
from compat_matrix.plan.made_programs import make_programs
from compat_matrix.plugins import found
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.requests.given import Export, Prepared, prepare
from compat_matrix.requests.policies import OptionError
from compat_matrix.requests.recorder import readers_of
from compat_matrix.runtimes.runtime import LOCAL, Runtime, local_runtime
from compat_matrix.verdict import NO_ENTRIES, Ledger

INTERRUPTED = "interrupted"


class Session:
    """Checks exports, one or many at a time; a context manager that ends the workers.

    ``folder`` takes the logs of the workers. With ``warm`` those of every runtime are kept, else of one runtime at a time:
    what a command needs that asks one after the other. The ``pyproject.toml`` of ``home`` (None: of the current folder) may
    declare consumers of other people.
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
        """Check exports; everything about them goes below ``out``, a new folder.

        Args:
          start, advance: are told how many cells there are to run, and each result.

        Raises:
          OptionError, PlanError, LedgerError: what is asked means nothing.
          SavedModelError: an export is no SavedModel. RuntimeTrouble: a runtime is not here.
        """
        registry = self.hosts.registry = self._registered(options)
        consumers = {name: registry.consumers[name] for name in options.names(registry)}
        runtimes = asked_runtimes(options)
        self.hosts.know(runtimes)
        text = ledger_text(options.expectations or NO_ENTRIES, registry)
        ledger = Ledger.parse(text)
        taken: set[str] = set()
        readers = readers_of(runtimes, consumers)
        given = out / running.GIVEN_FOLDER
        asked = (options.policy, given, self.hosts.of, readers, taken, options.tolerance)
        prepared = [prepare(export, *asked) for export in exports]
        plan = plan_of(prepared, consumers, runtimes, options, ledger, str(tool_version() or 0))
        running.lay_out(out, plan, text, registry)
        make_programs(plan, {cell.id for cell in plan if not cell.decided}, runtimes, registry)
        RunFile.of_now(require=options.require, runtimes=runtimes).write(out)
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
            for result in run_plan(self.hosts, out, plan, ledger, observers, replay, _foreteller(out, plan)):
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
        """Ours, and the plug-ins that are asked for, each of which was started once to say what it is."""
        key = (options.consumers, options.plugins)
        if key not in self._registries:
            try:
                self._registries[key] = found.registry(found.Asked(options.consumers, (), options.plugins), self.home)
            except PluginError as error:
                raise OptionError(str(error)) from error
        return self._registries[key]

    def _replay(self, cell: Cell, item: Prepared, options: Options) -> str:
        """The command line that makes one check again, of the same export with the same requests and answers."""
        words = ["savedmodel-compat", "check", str(item.directory), "--check", cell.check]
        runtime = self.hosts.runtimes.get(cell.runtime)
        if cell.is_served and runtime:
            words += ["--server", runtime.spec]
        elif cell.consumer not in (FORMAT, ALL):
            given = {word.partition("=")[0]: word for word in options.consumers}
            names = [side.consumer for side in cell.sides] or [cell.consumer]
            words += ["--plugins", str(options.plugins)] if options.plugins and not {*names} <= {*CONSUMERS} else []
            words += [word for name in names for word in ("--consumer", given.get(name, name))]
            if runtime and runtime.name != LOCAL:
                words += ["--runtime", runtime.spec]
        return shlex.join(words)


def _foreteller(out: Path, plan: Plan) -> Callable[[Cell, Result], None]:
    """Return a function that notes in results of other TensorFlows than the local one what the op history foretells of them.

    A check does not judge by it: an export that does not load is wrong, foretold or not.
    """
    elsewhere = [cell for cell in plan if cell.runtime != LOCAL]
    predictor = Predictor(out, (cell.consumer_version for cell in elsewhere)) if elsewhere else None

    def tell(cell: Cell, result: Result) -> None:
        if predictor is not None and cell.runtime != LOCAL:
            predictor.tell(cell, result)

    return tell


def asked_runtimes(options: Options) -> tuple[Runtime, ...]:
    """The local runtime if it can be asked or nobody else is, those that were named, the servers.

    Raises RuntimeTrouble: one is not installed, or means nothing; OptionError for a server that means nothing.
    """
    from compat_matrix.runtimes.resolve import resolve_labelled

    here = local_runtime()
    others = [runtime for spec in options.tensorflow for runtime in resolve_labelled(spec) if runtime.name != LOCAL]
    if options.servers:
        from compat_matrix.serving.servers import server_runtime

        try:
            others += [server_runtime(spec) for spec in options.servers]
        except ValueError as error:
            raise OptionError(str(error)) from error
    return (here, *others) if here.tensorflow_version or not others else tuple(others)


def _together(plan: Plan, cell: Cell, item: Prepared, results: Mapping[str, Result]) -> Observation:
    """``asked``, which is decided unless everything is, and ``compared``."""
    if cell.check == "asked":
        return Observation(Outcome.PASS)
    answers = [results[other.id] for other in plan if other.artifact == cell.artifact and other.check in ANSWERING]
    count, reason = compared(plan, answers, item)
    if not count:
        raise NotExecuted(f"nothing was compared: {reason}")
    return Observation(Outcome.PASS, details={"answers": count})


def clear(out: Path, keep: Sequence[Path]) -> None:
    """Empty the folder of an earlier run. Raises OptionError for one that holds something else, or what is to be checked."""
    files = [path for path in out.iterdir() if path.name != LOCK_FILE] if out.is_dir() else []
    if files and not (out / PLAN_FILE).is_file():
        raise OptionError(f"{out} holds files that are not from a run; choose another folder")
    inside = [path for path in keep if path.resolve().is_relative_to(out.resolve())]
    if inside:
        raise OptionError(f"{inside[0]} lies in the output folder, which is emptied; choose another folder")
    for path in files:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
