"""One session of checks: workers that stay warm from one export to the next, and a folder with the evidence of each."""

from __future__ import annotations

import datetime
import io
import json
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from compat_matrix.cells.consumers import CONSUMERS, Consumer
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import LEDGER_FILE, PLAN_FILE, RESULTS_FILE, RUNTIMES_FILE, Cell, Plan
from compat_matrix.cells.registry import OURS, PluginError, Registry
from compat_matrix.cells.results import Observation, Result, write_results
from compat_matrix.cells.sole_writer import LOCK_FILE
from compat_matrix.checks import run_cell
from compat_matrix.common.writing import write_text
from compat_matrix.engine import running
from compat_matrix.exports import still
from compat_matrix.exports.artifact import Export, Prepared, prepare
from compat_matrix.exports.options import ALL, ANSWERING, FORMAT, OptionError, Options
from compat_matrix.exports.planning import plan_of
from compat_matrix.exports.recording import Reader
from compat_matrix.exports.report import Report, compared
from compat_matrix.hosts.host import Host
from compat_matrix.plan.made_programs import make_programs
from compat_matrix.plugins import found
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.runtimes.runtime import LOCAL, Runtime, local_runtime
from compat_matrix.verdict import NO_ENTRIES, Ledger


class Session:
    """Checks exports, one or many at a time; a context manager that ends the workers.

    ``folder`` takes the logs of the workers. With ``warm`` those of every runtime are kept, else of one runtime at a time:
    what a command needs that asks one after the other. The ``pyproject.toml`` of ``home`` (None: of the current folder) may
    declare consumers of other people.
    """

    def __init__(self, folder: Path, warm: bool = False, home: Path | None = None) -> None:
        self.folder = folder
        self.warm = warm
        self.home = home
        self._registry = OURS
        self._registries: dict[tuple[tuple[str, ...], Path | None], Registry] = {}
        self._hosts: dict[tuple[str, ...], Host] = {}
        self._runtimes: dict[str, Runtime] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and servers."""
        while self._hosts:
            self._hosts.popitem()[1].__exit__()

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
        registry = self._registered(options)
        consumers = {name: registry.consumers[name] for name in options.names(registry)}
        runtimes = asked_runtimes(options)
        self._runtimes.update({runtime.name: runtime for runtime in runtimes})
        text = ledger_text(options.expectations or NO_ENTRIES, registry)
        ledger = Ledger.parse(text)
        taken: set[str] = set()
        readers = readers_of(runtimes, consumers)
        prepared = [prepare(export, options, out / running.GIVEN_FOLDER, self._host, readers, taken) for export in exports]
        plan = plan_of(prepared, consumers, runtimes, options, ledger, str(running.tool_version() or 0))
        registry.write(out)
        make_programs(plan, {cell.id for cell in plan if not cell.decided}, runtimes, registry)
        _write_plan(out, plan, text, runtimes)
        start(sum(not cell.decided for cell in plan))
        results = []
        try:
            for result in self._run(plan, prepared, options, out):
                results.append(ledger.judged(plan.by_id[result.cell], result))
                if not plan.by_id[result.cell].decided:
                    advance(result)
        finally:
            for host in self._hosts.values():
                host.release()
        write_results(out / RESULTS_FILE, results)
        description = running.describe_run(options.require, {}, 1)
        write_text(out / running.RUN_FILE, json.dumps(description, indent=1) + "\n")
        summary = running.report(out, Console(file=io.StringIO()), datetime.date.today())
        return Report(out, prepared, plan, {result.cell: result for result in results}, summary)

    def _run(self, plan: Plan, prepared: Sequence[Prepared], options: Options, out: Path) -> Iterator[Result]:
        of_case = {str(item.directory): item for item in prepared}
        results: dict[str, Result] = {}
        for cell in plan:
            item = of_case[cell.artifact]
            if cell.decided:
                result = Result.not_executed(plan.plan_id, cell.id, cell.decided.outcome, cell.decided.reason)
            elif cell.consumer == FORMAT:
                result = Result.observed(plan.plan_id, cell.id, still.observe(cell.check, item, options))
            elif cell.consumer == ALL:
                result = _together(plan, cell, item, results)
            else:
                result = Result.observed(plan.plan_id, cell.id, run_cell(cell, self._host(cell.runtime), out))
            result.replay = self._replay(cell, item, options) if result.outcome.observable else ""
            results[cell.id] = result
            yield result

    def _host(self, runtime: str) -> Host:
        key = (runtime,) if self.warm else ()
        if key not in self._hosts:
            folder = self.folder / runtime if self.warm else self.folder
            self._hosts[key] = Host(folder, self._runtimes)
        host = self._hosts[key]
        host.registry = self._registry
        return host

    def _registered(self, options: Options) -> Registry:
        """Ours, and the plug-ins that are asked for, each of which was started once to say what it is."""
        key = (options.consumers, options.plugins)
        if key not in self._registries:
            try:
                self._registries[key] = found.registry(found.Asked(options.consumers, (), options.plugins), self.home)
            except PluginError as error:
                raise OptionError(str(error)) from error
        self._registry = self._registries[key]
        return self._registry

    def _replay(self, cell: Cell, item: Prepared, options: Options) -> str:
        """The command line that makes one check again, of the same export with the same requests and answers."""
        words = ["savedmodel-compat", "check", str(item.directory), "--check", cell.check]
        runtime = self._runtimes.get(cell.runtime)
        if cell.is_served and runtime:
            words += ["--serving", runtime.spec]
        elif cell.consumer not in (FORMAT, ALL):
            asked = [word for word in options.consumers if word.partition("=")[0] == cell.consumer]
            words += ["--plugins", str(options.plugins)] if options.plugins and cell.consumer not in CONSUMERS else []
            words += ["--consumer", *(asked[:1] or [cell.consumer])]
            if runtime and runtime.name != LOCAL:
                words += ["--tensorflow", runtime.spec]
        return shlex.join(words)


def readers_of(runtimes: Sequence[Runtime], consumers: Mapping[str, Consumer]) -> list[Reader]:
    """Who can be asked for an answer, in order; a consumer that brings its version along once."""
    able = [runtime for runtime in runtimes if not runtime.server]
    out = []
    for runtime in able:
        for consumer in consumers.values():
            version = consumer.version if runtime is able[0] else None
            version = version or (runtime.tensorflow_version if consumer.version is None else None)
            if version and consumer.name not in {**runtime.lacks, **runtime.unready}:
                out.append(Reader(runtime.name, version, consumer))
    return out


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


def _together(plan: Plan, cell: Cell, item: Prepared, results: Mapping[str, Result]) -> Result:
    """``asked``, which is decided unless everything is, and ``compared``."""
    if cell.check == "asked":
        return Result.observed(plan.plan_id, cell.id, Observation(Outcome.PASS))
    answers = [results[other.id] for other in plan if other.artifact == cell.artifact and other.check in ANSWERING]
    count, reason = compared(plan, answers, item)
    if not count:
        return Result.not_executed(plan.plan_id, cell.id, Outcome.NOT_RUN, f"nothing was compared: {reason}")
    return Result.observed(plan.plan_id, cell.id, Observation(Outcome.PASS, details={"answers": count}))


def _write_plan(out: Path, plan: Plan, text: str, runtimes: Sequence[Runtime]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    plan.write(out / PLAN_FILE)
    write_text(out / LEDGER_FILE, text)
    known = {"schema": running.RUN_SCHEMA, "options": [], "runtimes": [runtime.to_json() for runtime in runtimes]}
    write_text(out / RUNTIMES_FILE, json.dumps(known, indent=1) + "\n")


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
