"""A run in its output folder: prepare the folder, let pytest execute the cells, judge them, write
the reports.
"""

from __future__ import annotations

import datetime
import fnmatch
import itertools
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import (
    LEDGER_FILE,
    NO_CONSUMER,
    PLAN_FILE,
    RESULTS_FILE,
    SERVING,
    STANDIN,
    Cell,
    Plan,
    PlanError,
)
from compat_matrix.cells.registry import OURS, Registry
from compat_matrix.cells.results import (
    Result,
    ResultsError,
    is_sealed,
    of_plan,
    read_results,
    remove_results,
    write_results,
)
from compat_matrix.cells.run_file import RUN_FILE, RunFile
from compat_matrix.engine.sessions import CELLS_FILE, QUIET, RunError, execute
from compat_matrix.plan.made_programs import make_programs
from compat_matrix.report import grid_html, html, junit, terminal
from compat_matrix.report.progress import announce
from compat_matrix.runtimes.pasts import Past
from compat_matrix.runtimes.runtime import LOCAL, Runtime
from compat_matrix.verdict import Ledger, tally
from compat_matrix.verdict.summary import summarise
from reference_impl.format.container.files import shown
from savedmodel_common import interrupts, strict_json
from savedmodel_common.printable import counted, like, unknown
from savedmodel_common.sole_writer import LOCK_FILE, sole_writer
from savedmodel_common.writing import write_set, write_text

SUMMARY_FILE, JUNIT_FILE, HTML_FILE = "summary.json", "junit.xml", "report.html"
GRID_FILE = "grid.json"  # of a run over many runtimes
ABOUT_FILE = "about.json"  # of a check: what its page needs beside plan and results
SCRATCH_FOLDER = "scratch"
FOLDERS = ("artifacts", "evidence", "logs", SCRATCH_FOLDER)
GIVEN_FOLDER = "given"  # artifacts that are made for this run alone
CELLS_PER_PROCESS = (
    16  # fewer take less time than another process, which imports each TensorFlow again
)
MEMORY_PER_PROCESS = 3 << 30  # bytes: four workers with a TensorFlow each
TAIL_CHARACTERS, TAIL_LINES = 4000, 20  # of a log, on the page


def default_processes(cells: int) -> int:
    """Return the number of pytest processes for a run here: one per CPU, limited by the free memory
    and the cells, at most 8.
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    import psutil

    memory = psutil.virtual_memory().available // MEMORY_PER_PROCESS
    return max(1, min(cpus, int(memory), cells // CELLS_PER_PROCESS, 8))


def select(plan: Plan, selectors: Mapping[str, Sequence[str]], cells: Sequence[str]) -> set[str]:
    """Return the ids of the cells that ``selectors`` (axis -> patterns with ``*``) and ``cells``
    (ids) choose. Raises RunError if there are none."""
    gone = sorted(set(cells) - set(plan.by_id))
    if gone:
        near = like(gone[0], plan.by_id)
        raise RunError(
            f"no such cell: {gone[0]} (savedmodel-compat matrix run --dry-run lists them).{near}"
        )
    for axis, patterns in selectors.items():
        # These names are known even if the plan has no cells for them: it makes no artifact, or
        # asks no server.
        always = {NO_CONSUMER, SERVING, STANDIN} if axis == "consumer" else set()
        wrong = patterns and unknown(
            f"{axis} of the plan", patterns, always | {getattr(cell, axis) for cell in plan}
        )
        if wrong:
            raise RunError(f"the selection holds no cell: {wrong}")
    chosen = {
        cell.id
        for cell in plan
        if (not cells or cell.id in cells) and _is_selected(cell, selectors)
    }
    reasons = {cell.decided.reason for cell in plan if cell.id in chosen and cell.decided}
    if not chosen:
        absent = sorted(
            {
                cell.decided.reason
                for cell in plan
                if cell.decided and cell.decided.outcome is Outcome.NOT_RUN
            }
        )
        raise RunError(
            ": ".join(["the selection holds no cell", *(["; ".join(absent)] if absent else [])])
        )
    if all(
        cell.decided and cell.decided.outcome is Outcome.NOT_APPLICABLE
        for cell in plan
        if cell.id in chosen
    ):
        raise RunError(
            f"all {len(chosen)} selected cells are not applicable: {'; '.join(sorted(reasons))}"
        )
    return chosen


def prepare(
    out: Path, plan: Plan, ledger_text: str, resume: bool = False, registry: Registry = OURS
) -> set[str]:
    """Prepare ``out`` for a run of ``plan``; return the ids of cells that need not run again.

    The files of an earlier run are removed or, with ``resume``, kept: the result of a cell stays
    valid if this plan asks the same question. Raises RunError for a run that has no cell in common
    with the plan.
    """
    done: set[str] = set()
    for name in (
        SUMMARY_FILE,
        JUNIT_FILE,
        HTML_FILE,
        GRID_FILE,
        ABOUT_FILE,
    ):  # reports of earlier observations
        (out / name).unlink(missing_ok=True)
    if resume and (out / PLAN_FILE).is_file():
        done = _take_over(out, plan, Ledger.parse(ledger_text))
        shutil.rmtree(out / SCRATCH_FOLDER, ignore_errors=True)  # of a session that was killed
    else:
        remove_results(out / RESULTS_FILE)
        for name in (RUN_FILE, CELLS_FILE):
            (out / name).unlink(missing_ok=True)
        for name in FOLDERS:
            shutil.rmtree(out / name, ignore_errors=True)
    lay_out(out, plan, ledger_text, registry)
    return done


def lay_out(out: Path, plan: Plan, ledger_text: str, registry: Registry = OURS) -> None:
    """Write the files from which a run of ``plan`` is executed and judged."""
    out.mkdir(parents=True, exist_ok=True)
    plan.write(out / PLAN_FILE)
    registry.write(out)
    write_text(out / LEDGER_FILE, ledger_text)


def _take_over(out: Path, plan: Plan, ledger: Ledger) -> set[str]:
    """Keep, and judge again, the results of cells that an earlier plan of this folder asked in the
    same way; return their ids.
    """
    earlier = Plan.read(out / PLAN_FILE)
    try:
        results = read_results(out / RESULTS_FILE)
    except ResultsError as error:
        raise RunError(str(error), harness=True) from error
    same = {
        cell.id
        for cell in plan
        if not cell.decided
        and cell.id in earlier.by_id
        and replace(earlier.by_id[cell.id], decided=None, artifact="") == replace(cell, artifact="")
    }
    if earlier.plan_id != plan.plan_id and not same:
        raise RunError(f"{out} holds a run of another plan: it cannot be resumed")
    # Results of this same plan are kept too: a session may have ended between writing its results
    # and its plan.
    asked = {earlier.plan_id: same, plan.plan_id: {cell.id for cell in plan if not cell.decided}}
    # Only faults of the machine are retried, and only on request.
    again = (Outcome.NOT_RUN, Outcome.ENV_ERROR)
    kept = [r for r in results if r.outcome not in again and r.cell in asked.get(r.plan_id, ())]
    write_results(
        out / RESULTS_FILE,
        judged([replace(result, plan_id=plan.plan_id) for result in kept], plan, ledger),
    )
    return {result.cell for result in kept}


def judged(results: Sequence[Result], plan: Plan, ledger: Ledger) -> Sequence[Result]:
    """Return the results judged by this ledger; their own judgement may be that of an older one."""
    for result in results:
        if result.outcome.observable:
            ledger.judged(plan.by_id[result.cell], result)
    return results


def replay_of(out: Path) -> Callable[[Cell], str]:
    """Return a function that gives the command line to execute a cell of this folder again."""
    known = RunFile.read(out)
    specs = {
        one.name: ("--server" if one.server else "--runtime", one.spec) for one in known.runtimes
    }
    places = folder_options(known.folders)

    def command(cell: Cell) -> str:
        needed = [
            specs[name]
            for name in dict.fromkeys((cell.producer_runtime, cell.runtime))
            if name in specs
        ]
        words = [] if set(specs) <= {LOCAL} else list(itertools.chain(*needed))
        options = "".join(f" {shlex.quote(word)}" for word in [*places, *words, *known.options])
        return f"savedmodel-compat matrix run --out replay{options} --cell {cell.id}"

    return command


@dataclass(frozen=True)
class Order:
    """A run as a command asks for it.

    ``chosen``: ids of cells; ``options``: the options of ``matrix run`` for the same plan.
    """

    plan: Plan
    chosen: set[str]
    ledger_text: str
    runtimes: Sequence[Runtime] = ()
    options: Sequence[str] = ()
    selection: Mapping[str, Any] = field(default_factory=dict)
    processes: int | None = None
    resume: bool = False
    require: bool | str = False  # SERVING: only cells of servers are required
    pytest_args: Sequence[str] = ()
    registry: Registry = OURS
    past: Past | None = None
    named: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # on the command line, by axis: each must be asked
    folders: Mapping[str, str] = field(default_factory=dict)  # that replace ours


def folder_options(folders: Mapping[str, str]) -> list[str]:
    """Return the options of ``matrix run`` for the folders that replace ours."""
    words = []
    for name, option in (("cases", "--cases-dir"), ("fixtures", "--fixtures")):
        if name in folders:
            words += [option, folders[name]]
    return words


def selection_of(selectors: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the selection for ``run.json``: the selectors that are set."""
    return {name: list(values) for name, values in selectors.items() if values}


def folders_of(fixtures: Path | None, cases: Path | None) -> dict[str, str]:
    """Return the folders for ``run.json``: those of the user's models."""
    places = {"cases": cases, "fixtures": fixtures}
    return {name: str(path.resolve()) for name, path in places.items() if path}


def carry_out(out: Path, order: Order, console: Console | None = None) -> dict[str, Any]:
    """Prepare the folder, run the missing cells, write the reports; return the summary.

    Raises the errors of its parts.

    ``console``: where the report is printed, in place of stdout. Raises RunError for a folder that
    holds something else, FolderInUse for a folder that another process writes to, and
    KeyboardInterrupt for an interrupted run, which has no report.
    """
    if (
        out.is_dir()
        and {path.name for path in out.iterdir()} - {GIVEN_FOLDER, LOCK_FILE}
        and not (out / PLAN_FILE).is_file()
    ):
        raise RunError(f"{out} holds files that are not from a run; choose another folder")
    with sole_writer(out):
        return _carry_out(out, order, console)


def _carry_out(out: Path, order: Order, console: Console | None) -> dict[str, Any]:
    resumed = RunFile.read(out) if order.resume else RunFile()
    if resumed.started and resumed.past != order.past:
        raise RunError(
            f"{out} holds a run in {_told(resumed.past)}, not in {_told(order.past)}: it cannot be"
            " resumed"
        )
    done = prepare(out, order.plan, order.ledger_text, order.resume, order.registry)
    missing = with_needed(order.plan, order.chosen) - done
    wanted = {cell.id for cell in order.plan if cell.id in missing and not cell.decided}
    make_programs(order.plan, wanted, order.runtimes, order.registry)
    description = RunFile.of_now(
        require=order.require,
        selection=order.selection,
        folders=order.folders,
        named=order.named,
        processes=order.processes or default_processes(len(wanted)),
        options=order.options,
        runtimes=order.runtimes,
        past=order.past,
    )
    description.earlier = _earlier_programs(resumed, description.program) if done else ()
    if description.earlier:
        print(
            f"{counted(len(done), 'result')} of earlier sessions kept: their answers, predictions"
            f" and names of version skew come from {', '.join(description.earlier)}. Run without"
            " --resume to ask this program.",
            file=sys.stderr,
        )
    run(out, order.plan, description, wanted, order.pytest_args, float(resumed.seconds or 0))
    if QUIET not in order.pytest_args:
        announce("writing the report")
    return report(out, console or stdout_console(), datetime.date.today())


def _told(past: Past | None) -> str:
    return f"past {past.seed}" if past else "the usual past"


def _earlier_programs(resumed: RunFile, program: str) -> Sequence[str]:
    """Return the programs other than this one that made the results of a run that is resumed."""
    known = [resumed.program] if resumed.started else []
    return tuple(name for name in dict.fromkeys([*resumed.earlier, *known]) if name != program)


def _is_selected(cell: Cell, selectors: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a cell matches a pattern of each axis that has patterns."""
    for axis, patterns in selectors.items():
        value = getattr(cell, axis)
        if patterns and not any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns):
            return False
    return True


def with_needed(plan: Plan, chosen: set[str]) -> set[str]:
    """Return the chosen cells, the cells that they compare, and the productions of their artifacts.

    Productions of existing artifacts are included, since every production needs a result.
    """
    asked = [cell for cell in plan if cell.id in chosen and not cell.decided]
    artifacts = {cell.artifact_id for cell in asked}
    needed = set(chosen)
    for cell in asked:
        needed.update(side.id for side in cell.sides)
    for cell in plan:
        if cell.is_production and cell.artifact_id in artifacts:
            needed.add(cell.id)
    return needed


def run(
    out: Path,
    plan: Plan,
    description: RunFile,
    wanted: set[str],
    pytest_args: Sequence[str],
    before: float = 0.0,
) -> None:
    """Execute the prepared folder and write ``run.json`` beside the results, even if the run is
    interrupted.

    ``before``: seconds of earlier sessions of this run, to which those of this session are added.
    """
    started = time.monotonic()
    description.write(out)
    try:
        execute(out, plan, wanted, description.processes, pytest_args)
    finally:
        description.seconds = round(before + time.monotonic() - started, 1)
        description.write(out)


def report(out: Path, console: Console, today: datetime.date) -> dict[str, Any]:
    """Judge a folder from its files alone, write ``summary.json``, ``report.html`` and
    ``junit.xml``, and return the summary.

    The summary is written last: without it, the reports are not complete. Raises PlanError,
    ResultsError, LedgerError or OSError for files that cannot be used, FolderInUse during a run.
    """
    with sole_writer(out):
        return _report(out, console, today)


def _report(out: Path, console: Console, today: datetime.date) -> dict[str, Any]:
    plan = Plan.read(out / PLAN_FILE)
    ledger = Ledger.read(out / LEDGER_FILE) if (out / LEDGER_FILE).exists() else Ledger()
    results = judged(list(of_plan(read_results(out / RESULTS_FILE), plan).values()), plan, ledger)
    summary = summarise(
        plan, results, ledger, today, RunFile.read(out).facts(), is_sealed(out / RESULTS_FILE)
    )
    records = [json.loads(result.to_line()) for result in results]
    reasons = {
        entry.index: {"kind": entry.kind, "reason": entry.reason, "issue": entry.issue}
        for entry in ledger.entries
    }
    tails = _log_tails(out, records)
    texts = {}
    if plan.is_grid:
        texts[GRID_FILE] = (
            json.dumps(tally.record(plan, results, summary, reasons), indent=1) + "\n"
        )
        texts[HTML_FILE] = grid_html.render(plan, results, summary, reasons, tails)
    else:
        texts[HTML_FILE] = html.render(
            plan.to_json(), records, summary, reasons, tails, _about(out)
        )
    texts[JUNIT_FILE] = junit.of_run(plan.to_json(), records, summary)
    interrupts.check()
    write_set(out, {**texts, SUMMARY_FILE: json.dumps(summary, indent=1) + "\n"})
    files = [
        shown(out / name)
        for name in (HTML_FILE, SUMMARY_FILE, RESULTS_FILE, JUNIT_FILE, GRID_FILE)
        if (out / name).exists()
    ]
    terminal.render(plan, results, summary, console, files)
    return summary


def _about(out: Path) -> dict[str, Any] | None:
    """Read the notes of a check for its page. Raises PlanError."""
    try:
        return dict(strict_json.loads((out / ABOUT_FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise PlanError(f"{out / ABOUT_FILE}: {error}") from error


def _log_tails(out: Path, records: Iterable[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Return cell -> name of an evidence text -> its last lines, for the cells that need a person's
    attention.
    """
    tails: dict[str, dict[str, str]] = {}
    for record in records:
        if record["expected"] is not False:
            continue
        for name, relative in record["evidence"].items():
            path = (out / relative).resolve()
            if path.suffix == ".txt" and path.is_relative_to(out.resolve()) and path.is_file():
                with path.open("rb") as stream:  # a worker may have written gigabytes
                    stream.seek(-min(path.stat().st_size, 4 * TAIL_CHARACTERS), os.SEEK_END)
                    lines = stream.read().decode("utf-8", "replace")[-TAIL_CHARACTERS:].splitlines()
                tails.setdefault(record["cell"], {})[name] = "\n".join(lines[-TAIL_LINES:])
    return tails


def stdout_console() -> Console:
    """Return the console for reports: as wide as the terminal, or wide enough for the matrix
    without a terminal.
    """
    return Console(width=None if sys.stdout.isatty() else terminal.WIDTH, highlight=False)
