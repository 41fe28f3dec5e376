"""The pytest plugin that collects each planned cell as an item: ``pytest -p
compat_matrix.pytest_plugin OUT/plan.json``.

The plan file is collected and its undecided cells are the items, so ``-k``, ``-x``, ``-n 2`` and
``--junitxml`` work as usual. An item passes if its outcome is the one that the ledger expects
(``expectations.toml`` beside the plan, if there is one). A cell with an unexpected outcome is
executed once more, in a fresh process, before its item ends
(:mod:`compat_matrix.engine.second_tries`). Results go to ``results.jsonl`` beside the plan, one
flushed line as each cell ends. Existing results of the same plan are kept until their cell runs
again.

The cells of one artifact run in one process, whatever ``--dist`` says, since later cells need its
production. In a plan over many runtimes the cells of one runtime run in one process; an earlier
session on the same folder has made their artifacts.

A plugin may execute cells itself through the hook ``pytest_compat_run_cell`` (see
:class:`CompatHooks`).
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat_matrix.cells import registry, tries
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import (
    ASKING,
    LEDGER_FILE,
    MAKING,
    PLAN_FILE,
    Cell,
    Plan,
    PlanError,
    models_to_serve,
)
from compat_matrix.cells.results import DESELECTED, Observation, Result, ResultsError
from compat_matrix.cells.run_file import RunFile
from compat_matrix.checks import run_cell
from compat_matrix.engine.executor import Executor
from compat_matrix.engine.result_log import ResultLog
from compat_matrix.engine.running import replay_of
from compat_matrix.engine.second_tries import MOST_CELLS, SecondTries
from compat_matrix.hosts.host import Host
from compat_matrix.verdict import Ledger, LedgerError, prediction
from compat_matrix.workers.protocol import COLLECT_AFTER
from savedmodel_common import interrupts

if TYPE_CHECKING:
    from compat_matrix.engine.predict import Predictor
    from compat_matrix.report.progress import Progress


class CompatHooks:
    """The hook that other plugins may implement."""

    @pytest.hookspec(firstresult=True)
    def pytest_compat_run_cell(
        self, cell: Cell, out: Path, config: pytest.Config
    ) -> Observation | None:
        """Execute a cell of the plan in folder ``out``. None leaves it to the next plugin, and
        finally to ``compat_matrix.checks``. A cell with an unexpected outcome is executed twice.

        If it raises ``compat_matrix.checks.NotExecuted``, the cell is NOT_RUN; any other exception
        is a SETUP_ERROR.
        """


class Run:
    """The state of one process of the run: the plan, the cells to execute, and the executor with
    its worker host.
    """

    def __init__(self, config: pytest.Config, plan_file: Path) -> None:
        self.plan_file = plan_file
        self.out = plan_file.parent
        self.plan = Plan.read(plan_file)
        self.ledger = (
            Ledger.read(self.out / LEDGER_FILE) if (self.out / LEDGER_FILE).exists() else Ledger()
        )
        chosen = config.getoption("compat_cells")
        self.chosen = set(Path(chosen).read_text(encoding="utf-8").split()) if chosen else None
        self.phase = config.getoption("compat_phase")
        self.resources = contextlib.ExitStack()

        def observe(cell: Cell) -> Any:
            return config.hook.pytest_compat_run_cell(cell=cell, out=self.out, config=config)

        def foretell(cell: Cell, result: Result) -> None:
            self.predictor.foretell(cell, result)

        interruptions = (KeyboardInterrupt, pytest.exit.Exception)
        processes = getattr(config, "workerinput", {}).get("workercount", 1)
        most = config.getoption("compat_second_tries")
        second_tries = (
            SecondTries(self.out, lambda: self.host.fresh(), processes, most) if most else None
        )
        judging = (self.plan, self.ledger)
        self.executor = Executor(
            self.out, *judging, observe, replay_of(self.out), interruptions, foretell, second_tries
        )

    @functools.cached_property
    def predictor(self) -> Predictor:
        """The predictions of the op history for the cells of this run."""
        from compat_matrix.engine.predict import Predictor

        return Predictor(self.out, (cell.consumer_version for cell in self.plan))

    def items(self) -> list[Cell]:
        """Return the cells to execute: undecided, chosen (if there is a selection), and of this
        phase (if there are phases).
        """
        return [
            cell
            for cell in self.plan
            if not cell.decided and self.wanted(cell) and self.in_phase(cell)
        ]

    def wanted(self, cell: Cell) -> bool:
        """Return whether the run is to execute a cell, in this session or in another."""
        return self.chosen is None or cell.id in self.chosen

    def in_phase(self, cell: Cell) -> bool:
        """Return whether this session executes a cell of this kind."""
        return not self.phase or cell.is_production == (self.phase == MAKING)

    @functools.cached_property
    def host(self) -> Host:
        """Return the host of worker processes, which starts with the first cell that needs it."""
        given, upcoming = RunFile.read(self.out), models_to_serve(self.items(), self.out)
        folders = given.folder("cases"), given.folder("fixtures")
        known = registry.read(self.out)
        return self.resources.enter_context(
            Host(self.out, given.by_name, *folders, upcoming, known, given.past)
        )


RUN = pytest.StashKey[Run]()


class CellFailed(Exception):
    """A cell did not end as expected."""


class PlanFile(pytest.File):
    """``plan.json`` as a collection of cells."""

    def collect(self) -> Iterator[CellItem]:
        for cell in self.config.stash[RUN].items():
            yield CellItem.from_parent(self, name=cell.id, cell=cell)


class CellItem(pytest.Item):
    """One cell.

    ``needed_by_others``: the cell is not selected, but selected cells need its artifact.
    """

    def __init__(self, *, cell: Cell, needed_by_others: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cell = cell
        self.needed_by_others = needed_by_others
        self.result: Result | None = None

    def runtest(self) -> None:
        run = self.config.stash[RUN]
        interrupts.check()
        if self.needed_by_others and run.executor.stands(self.cell):
            return
        self.result = result = run.executor.execute(self.cell)
        self.user_properties.append(("outcome", str(result.outcome)))
        if result.outcome is Outcome.NOT_RUN:
            pytest.skip(result.message)
        if not result.expected:
            raise CellFailed(self.failure_text(run, result))

    def failure_text(self, run: Run, result: Result) -> str:
        """Describe an unexpected cell: outcome, expectation, message, evidence, and the command
        that repeats it.
        """
        entry = run.ledger.entry_for(self.cell)
        wanted = "PASS"
        if entry:
            error = " ".join(
                filter(None, (entry.error_class, entry.message and f"/{entry.message}/"))
            )
            wanted = (
                f"{' or '.join(map(str, (entry.outcome, *entry.others)))} {error}, {entry.title()}:"
                f" {entry.reason}"
            )
        lines = [f"{result.outcome}, expected {wanted}"]
        if entry is None:
            lines += filter(None, [prediction.line(result)])
        if result.error_class or result.message:
            message = "\n".join(result.message.splitlines()[:12])
            lines.append(f"{result.error_class or 'message'}: {message[:2000]}")
        if result.skew:
            lines.append(f"skew: {result.skew}")
        if result.outcome is not Outcome.UNSTABLE:
            lines += filter(None, [tries.note_of(result)])
        lines += [f"{name}: {run.out / path}" for name, path in sorted(result.evidence.items())]
        return "\n".join([*lines, f"replay: {result.replay}"])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return (
            str(excinfo.value)
            if isinstance(excinfo.value, CellFailed)
            else super().repr_failure(excinfo, style)
        )

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return (
            self.path,
            None,
            f"cell {self.cell.id}",
        )  # not the end of the node id: pytest would write its dots as "::"


class Recorder:
    """The plugin of the controlling process: it writes every result to ``results.jsonl`` as it
    arrives, and shows the progress."""

    def __init__(self, run: Run, progress: Progress | None) -> None:
        self.run = run
        self.progress = progress
        self.collected: set[str] | None = None  # None: the collection did not end
        self.interrupted = ""
        self.processes = 1
        self.log: ResultLog | None = None

    def pytest_sessionstart(self) -> None:
        try:
            self.log = ResultLog(self.run.out, self.run.plan)
        except ResultsError as error:
            raise pytest.UsageError(str(error)) from error

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.processes = session.config.getoption("numprocesses", None) or 1
        if not _distributed(session.config):
            self._collected([item.name for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if self.collected is None:
            self._collected([_cell_id(nodeid) for nodeid in ids])

    def _collected(self, ids: list[str]) -> None:
        self.collected = set(ids)
        if self.progress:
            from compat_matrix.report import cell_costs, time_left

            cells = [
                self.run.plan.by_id[cell_id] for cell_id in ids if cell_id in self.run.plan.by_id
            ]
            self.progress.start(
                len(ids), time_left.TimeLeft(cell_costs.recorded(), cells, self.processes)
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        line = getattr(report, "compat_result", None)
        if line:
            self._record(Result.from_line(line))
        elif report.failed:  # our own item failed, not the check, or its process died
            cell_id = _cell_id(report.nodeid)
            seen = Observation(
                Outcome.SETUP_ERROR, error_class="pytest", message=report.longreprtext
            )
            cell = self.run.plan.by_id.get(cell_id)
            if cell:
                self._record(
                    self.run.ledger.judged(
                        cell, Result.observed(self.run.plan.plan_id, cell_id, seen)
                    )
                )

    def _record(self, result: Result) -> None:
        interrupts.check()
        if self.log:
            self.log.add(result)
        if self.progress:
            from compat_matrix.report.progress import unexpected

            self.progress.advance(unexpected(result), cell=self.run.plan.by_id.get(result.cell))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.interrupted = str(excinfo.value) or "interrupted"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Add the reason for each missing result, and write the file in the order of the plan."""
        stopped = str(self.interrupted or session.shouldfail or session.shouldstop or "no result")

        def reason(cell: Cell) -> str:
            if self.run.wanted(cell) and not self.run.in_phase(cell):
                return ""  # the next phase adds its result
            left_out = self.collected is not None and cell.id not in self.collected
            return DESELECTED if left_out or not self.run.wanted(cell) else stopped

        if self.progress:
            self.progress.stop()
        if self.log:
            self.log.close(reason)


def _cell_id(nodeid: str) -> str:
    return nodeid.partition("::")[2]


def _distributed(config: pytest.Config) -> bool:
    return bool(config.getoption("dist", "no") != "no")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("savedmodel-compat")
    group.addoption(
        "--compat-cells",
        metavar="FILE",
        default=None,
        help="execute only the cells named in FILE, one id a line",
    )
    group.addoption(
        "--compat-phase",
        choices=(MAKING, ASKING),
        default="",
        help="execute only the cells of this phase",
    )
    group.addoption(
        "--compat-second-tries",
        metavar="N",
        type=int,
        default=MOST_CELLS,
        help=f"execute at most N cells with unexpected results once more (default: {MOST_CELLS})",
    )
    group.addoption(
        "--compat-progress", action="store_true", help="show the progress of the matrix"
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(CompatHooks)


@pytest.hookimpl(
    trylast=True
)  # after pytest's own terminal report was registered, before xdist asks for it
def pytest_configure(config: pytest.Config) -> None:
    """Find the plan among the arguments. Without one the plugin does nothing."""
    paths = (config.invocation_params.dir / str(arg).partition("::")[0] for arg in config.args)
    plans = sorted({path.resolve() for path in paths if path.name == PLAN_FILE and path.is_file()})
    if not plans:
        return
    if len(plans) > 1:
        raise pytest.UsageError("one plan at a time: " + ", ".join(map(str, plans)))
    try:
        config.stash[RUN] = run = Run(config, plans[0])
    except (PlanError, LedgerError, OSError) as error:
        raise pytest.UsageError(str(error)) from error
    # pytest looks for garbage at its end, twice, and need not visit what was imported.
    gc.freeze()
    if hasattr(config, "workerinput"):
        gc.set_threshold(COLLECT_AFTER)  # as the commands do
        interrupts.interruptible()
        return
    progress = None
    if config.getoption("compat_progress"):
        from compat_matrix.report.progress import Progress

        progress = Progress("cells", "unexpected")
    config.pluginmanager.register(Recorder(run, progress), "compat_recorder")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the worker processes."""
    if RUN in config.stash:
        config.stash[RUN].resources.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PlanFile | None:
    run = parent.config.stash.get(RUN, None)
    if run is None or file_path.resolve() != run.plan_file:
        return None
    return PlanFile.from_parent(parent, path=file_path, name=PLAN_FILE)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """After -k and similar options: put back the productions of the artifacts that the remaining
    cells need.
    """
    yield
    run = config.stash.get(RUN, None)
    if run is None:
        return
    present = {item.cell.id for item in items if isinstance(item, CellItem)}
    complete: list[pytest.Item] = []
    for item in items:
        production = (
            run.executor.productions.get(item.cell.artifact_id)
            if isinstance(item, CellItem)
            else None
        )
        if (
            production
            and item.parent
            and production.id not in present
            and not run.executor.settled(production)
        ):
            present.add(production.id)
            complete.append(
                CellItem.from_parent(
                    item.parent, name=production.id, cell=production, needed_by_others=True
                )
            )
        complete.append(item)
    items[:] = complete


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Pass the result to the controlling process as text, which every kind of transport
    preserves.
    """
    outcome = yield
    if isinstance(item, CellItem) and call.when == "call" and item.result:
        outcome.get_result().compat_result = item.result.to_line()  # type: ignore[attr-defined]


@pytest.hookimpl(trylast=True)
def pytest_compat_run_cell(cell: Cell, out: Path, config: pytest.Config) -> Observation:
    """The usual way to execute a cell: in a worker process of the runtime."""
    return run_cell(cell, config.stash[RUN].host, out)


@pytest.hookimpl(hookwrapper=True)
def pytest_sessionstart(session: pytest.Session) -> Iterator[None]:
    """Block signals while processes of pytest-xdist start: each must be ready before a signal to
    the process group arrives.
    """
    if RUN in session.config.stash and _distributed(session.config):
        with interrupts.deferred():
            yield
    else:
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    if RUN in session.config.stash:
        interrupts.check()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler that sends the cells of one artifact, or of one of many runtimes, to one
    process.
    """
    if RUN not in config.stash:
        return None
    from compat_matrix.engine.scheduling import ByScope

    return ByScope(config, log, config.stash[RUN].plan)
