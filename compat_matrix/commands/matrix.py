"""``savedmodel-compat matrix``: plan, run, report, diff, expect."""

from __future__ import annotations

import datetime
import functools
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import click

from compat_matrix.commands.plugin_options import about_plugins, asked_plugins, ledger_text, plugin_option, plugin_words
from compat_matrix.commands.refusing import EXISTING_FILE, Refused
from compat_matrix.expectations import DEFAULT_PATH, NO_ENTRIES, Ledger, LedgerError
from compat_matrix.outcomes import ExitCode, Outcome
from compat_matrix.plan import PLAN_FILE, RESULTS_FILE, Plan, PlanError, parse_cell_id
from compat_matrix.plugins.registry import OURS, Registry
from compat_matrix.results import ResultsError, read_results
from compat_matrix.runtimes.runtime import LABELLED, LOCAL, Runtime, local_runtime
from compat_matrix.writing import write_text

STALE = ExitCode.STALE_EXPECTATION
EXISTING_DIR = click.Path(exists=True, file_okay=False, path_type=Path)


def exit_codes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn the errors of the matrix into exit codes: a bad ledger is 2, a plan or a result file that cannot be used is 4."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        from compat_matrix.running import RunError

        try:
            return function(*args, **kwargs)
        except LedgerError as error:
            raise Refused(str(error), STALE) from error
        except (PlanError, ResultsError) as error:
            raise Refused(str(error), ExitCode.HARNESS_ERROR) from error
        except RunError as error:
            raise Refused(str(error), ExitCode.HARNESS_ERROR if error.harness else ExitCode.USAGE) from error

    return wrapped


def plan_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what the plan is made of."""
    for option in (
        click.option("--fixtures", type=EXISTING_DIR, help="Your folder of artifacts, in place of all that is ours."),
        click.option("--cases", type=EXISTING_DIR, help="Your folder of case files, in place of all that is ours."),
        click.option(
            "--expectations", type=EXISTING_FILE, help="The ledger of known failures (default: ours; none for what is yours)."
        ),
    ):
        function = option(function)
    return function


def ledger_path(expectations: Path | None, fixtures: Path | None, cases: Path | None) -> Path:
    """Our ledger speaks of our artifacts only: about others it has nothing but dead entries to say."""
    return expectations or (NO_ENTRIES if fixtures or cases else DEFAULT_PATH)


def runtime_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which TensorFlows answer."""
    for option in (
        click.option(
            "--runtime",
            "runtimes",
            multiple=True,
            metavar="RUNTIME",
            help="A TensorFlow to ask (default: the local one and those of COMPAT_RUNTIMES): local, 2.12, tensorflow==2.20.0, a "
            "wheel, an interpreter; LABEL=RUNTIME tells two of one version apart. The first is asked everything.",
        ),
        click.option("--all-checks", is_flag=True, help="Ask every runtime everything."),
        click.option(
            "--server",
            "servers",
            multiple=True,
            metavar="SERVER",
            help="A model server to ask too: an image (tensorflow/serving:2.19.1), standin, binary:PATH, remote:HOST:PORT,PORT.",
        ),
    ):
        function = option(function)
    return function


def require_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--require`` and ``--require serving``; the value is True, "serving" or False."""
    return click.option(
        "--require",
        is_flag=False,
        flag_value="all",
        default=None,
        type=click.Choice(["all", "serving"]),
        callback=lambda _context, _option, value: {None: False, "all": True}.get(value, value),
        help="A cell that is not run fails the run, whatever the reason; with `serving` one that only a server can answer.",
    )(function)


def _make_plan(
    ledger: Ledger,
    fixtures: Path | None,
    cases: Path | None,
    runtimes: Sequence[Runtime] = (),
    all_checks: bool = False,
    producers: Collection[str] = (),
    registry: Registry = OURS,
) -> Plan:
    from compat_matrix.checks import CHECKS
    from compat_matrix.planning import Axes, make_plan

    runtimes = tuple(runtimes) or (local_runtime(),)
    axes = Axes(runtimes, home=(runtimes[0].name,), checks=tuple(CHECKS) if all_checks else None)
    usual = {producer.name for producer in registry.producers.values() if producer.usual} | {p.name for p in registry.theirs[1]}
    wanted = usual | (set(producers) & set(registry.producers))
    return make_plan(ledger, fixtures, cases, axes, wanted, registry=registry)


def asked_runtimes(specs: Sequence[str], install: bool = False) -> tuple[Runtime, ...]:
    """The runtimes a command line names; without any the local one and those of COMPAT_RUNTIMES.

    ``install`` makes what is not here. Raises Refused.
    """
    from compat_matrix.runtimes.places import NotInstalled, RuntimeTrouble, UnknownRuntime
    from compat_matrix.runtimes.resolve import provide, resolve_all

    found: list[Runtime] = []
    try:
        for spec in specs or (LOCAL, *filter(None, [os.environ.get("COMPAT_RUNTIMES")])):
            label = LABELLED.fullmatch(spec.strip())
            wanted = label[2] if label else spec
            try:
                resolved = resolve_all(wanted)
            except NotInstalled as missing:
                if not install:
                    raise
                for one in missing.specs:
                    provide(one, lambda doing, one=one: click.echo(f"{one}: {doing}", err=True))  # type: ignore[misc]
                resolved = resolve_all(wanted)
            found += [runtime.labelled(label[1]) for runtime in resolved] if label else resolved
    except RuntimeTrouble as error:
        code = ExitCode.USAGE if isinstance(error, UnknownRuntime) else ExitCode.HARNESS_ERROR
        raise Refused(str(error), code) from error
    return tuple(found)


def asked_servers(specs: Sequence[str], build: Callable[[], None] | None = None) -> tuple[Runtime, ...]:
    """The servers a command line names, here or not. Raises Refused for what names none."""
    if not specs:
        return ()
    from compat_matrix.runtimes.servers import server_runtime

    try:
        return tuple(server_runtime(spec, build) for spec in specs)
    except ValueError as error:
        raise Refused(str(error), ExitCode.USAGE) from error


@click.group()
def matrix() -> None:
    """Plan, run and report the compatibility matrix.

    \b
    Exit codes, the first that applies: 64 usage or an empty selection, 4 harness or environment error,
    1 unexpected failure or other error, 2 stale expectation (a listed cell passes, a dead, too wide,
    overlapping or expired entry, an invalid file), 3 incomplete run, 0 as expected.
    """


@matrix.command()
@plan_options
@runtime_options
@plugin_option
@click.option("--producer", multiple=True, metavar="NAME", help="Plan this producer too.")
@click.option("--consumer", multiple=True, metavar="NAME", help="Plan this consumer too: a plug-in, or NAME=COMMAND.")
@click.option("--json", "as_json", is_flag=True, help="The plan as JSON, as `run` writes it.")
@exit_codes
def plan(
    fixtures: Path | None,
    cases: Path | None,
    expectations: Path | None,
    runtimes: tuple[str, ...],
    all_checks: bool,
    servers: tuple[str, ...],
    plugins: Path | None,
    producer: tuple[str, ...],
    consumer: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the cells this machine would run, and what is not applicable and why."""
    registry = asked_plugins(consumer, producer, plugins)
    ledger = Ledger.parse(ledger_text(ledger_path(expectations, fixtures, cases), registry))
    asked = asked_runtimes(runtimes) + asked_servers(servers)
    made = _make_plan(ledger, fixtures, cases, asked, all_checks, producer, registry)
    if as_json:
        click.echo(json.dumps(made.to_json()))
        return
    for cell in made:
        click.echo(cell.id + (f"  {cell.decided.outcome}: {cell.decided.reason}" if cell.decided else ""))
    decided = Counter(str(cell.decided.outcome) if cell.decided else "to run" for cell in made)
    click.echo(f"{len(made.cells)} cells: " + ", ".join(f"{count} {what}" for what, count in sorted(decided.items())), err=True)


@matrix.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The output folder.")
@click.option("-n", "processes", type=click.IntRange(1, 64), help="Processes (default: by CPUs and free memory).")
@click.option("-k", "expression", help="Only cells whose id fits this pytest expression.")
@click.option("--case", "case", multiple=True, metavar="NAME", help="Only this case (* is allowed; may be repeated).")
@click.option("--producer", multiple=True, metavar="NAME", help="Only this producer; NAME=FOLDER: the artifacts in a folder.")
@click.option("--consumer", multiple=True, metavar="NAME", help="Only this consumer; NAME=COMMAND: a program of yours.")
@click.option("--check", multiple=True, metavar="NAME", help="Only this check.")
@click.option("--cell", "cells", multiple=True, metavar="ID", help="Only this cell.")
@click.option("--resume", is_flag=True, help="Keep the results of an interrupted run of the same plan, run what is missing.")
@require_option
@plan_options
@plugin_option
@runtime_options
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
@exit_codes
def run(
    out: Path,
    processes: int | None,
    expression: str | None,
    cells: tuple[str, ...],
    resume: bool,
    require: bool | str,
    fixtures: Path | None,
    cases: Path | None,
    expectations: Path | None,
    plugins: Path | None,
    runtimes: tuple[str, ...],
    all_checks: bool,
    servers: tuple[str, ...],
    pytest_args: tuple[str, ...],
    **selectors: tuple[str, ...],
) -> int:
    """Run the matrix and write results.jsonl, summary.json, junit.xml and report.html to the output folder.

    Arguments behind -- go to pytest (-x, -v, ...). A selection includes the production of the artifacts it asks about.
    """
    from compat_matrix import running
    from compat_matrix.plugins.found import names

    registry = asked_plugins(selectors["consumer"], selectors["producer"], plugins)
    options = plugin_words(selectors, plugins, registry)
    selectors |= {side: names(selectors[side]) for side in ("consumer", "producer")}
    text = ledger_text(ledger_path(expectations, fixtures, cases), registry)
    asked = asked_runtimes(runtimes) + asked_servers(servers)
    producers = {*selectors["producer"], *(parse_cell_id(cell)["producer"] for cell in cells)}
    made = _make_plan(Ledger.parse(text), fixtures, cases, asked, all_checks, producers, registry)
    chosen = running.select(made, selectors, cells)
    selection = {name: list(values) for name, values in {**selectors, "cell": cells}.items() if values}
    selection |= {name: [str(path.resolve())] for name, path in (("cases", cases), ("fixtures", fixtures)) if path}
    if expression:
        selection["k"] = [expression]
        pytest_args += ("-k", expression)
    order = running.Order(
        made,
        chosen,
        text,
        asked,
        [*options, *(["--all-checks"] if all_checks else [])],
        selection,
        processes,
        resume,
        require,
        pytest_args,
        registry,
    )
    return int(running.carry_out(out.resolve(), order)["exit_code"])


@matrix.command()
@click.argument("out", type=EXISTING_DIR)
@exit_codes
def report(out: Path) -> int:
    """Judge and render a run again, from the files in its folder alone; ends with the exit code of that run."""
    from compat_matrix import running

    return int(running.report(out.resolve(), running.stdout_console(), datetime.date.today())["exit_code"])


@matrix.command()
@click.argument("out_a", type=EXISTING_DIR)
@click.argument("out_b", type=EXISTING_DIR)
@click.option("--json", "as_json", is_flag=True, help="The comparison as JSON.")
@exit_codes
def diff(out_a: Path, out_b: Path, as_json: bool) -> int:
    """Compare two runs: what regressed, vanished, drifted, was fixed, still fails, is newly covered. Versions may differ.

    Exit code 1 when a cell regressed (passed in A, fails in B) or vanished (observed in A, not in B), or when an answer drifted
    by more than the case tolerates. `savedmodel-compat gate` makes pages and a comment of it.
    """
    from compat_matrix.gate.compare import KINDS, compare
    from compat_matrix.gate.drift import drifts
    from compat_matrix.gate.pairs import Run, pairs_of_folders
    from compat_matrix.report.gate_words import KIND_WORDS, drift_words, side_words
    from compat_matrix.results import one_line

    sides = [{"label": out.name, "spec": str(out)} for out in (out_a, out_b)]
    _, verdict = compare(pairs_of_folders(Run.read(out_a), Run.read(out_b)), sides, drifts)
    if as_json:
        click.echo(json.dumps({kind: [fact for fact in verdict["facts"] if fact["kind"] == kind] for kind in KINDS}))
        return int(verdict["exit_code"])
    for kind in KINDS:
        items = [fact for fact in verdict["facts"] if fact["kind"] == kind]
        click.echo(f"{KIND_WORDS[kind]}: {sum(counts[kind] for counts in verdict['counts'].values())}")
        for fact in items:
            words = " -> ".join(side_words(fact[side]) for side in ("baseline", "candidate"))
            click.echo(f"  {fact['pair']}  {one_line('; '.join(map(drift_words, fact['drift'])) or words, 200)}")
    return int(verdict["exit_code"])


@matrix.group()
def expect() -> None:
    """The ledger of known failures: check it, rewrite it from a run, explain a cell."""


@expect.command("check")
@plan_options
@exit_codes
def expect_check(fixtures: Path | None, cases: Path | None, expectations: Path | None) -> int:
    """Check the ledger against the plan, without running: syntax, dead, too wide, overlapping, expired entries."""
    from compat_matrix.expectations.ledger import judge_entries
    from compat_matrix.report import agreement
    from compat_matrix.report.terminal import LEDGER_WORDS, ledger_lines
    from compat_matrix.running import tool_version

    ledger = Ledger.read(ledger_path(expectations, fixtures, cases))
    made = agreement.extended(_make_plan(ledger, fixtures, cases))
    verdict = judge_entries(ledger, made, datetime.date.today(), tool_version())
    lines = [line for kind in LEDGER_WORDS for line in ledger_lines(kind, getattr(verdict, kind))]
    for line in lines:
        click.echo(line)
    click.echo(f"{len(ledger.entries)} entries, {len(lines)} problems", err=True)
    return int(STALE if verdict.stale else ExitCode.AS_EXPECTED)


@expect.command("update")
@click.argument("out", type=EXISTING_DIR)
@click.option("--expectations", type=EXISTING_FILE, default=DEFAULT_PATH, help="The file to rewrite (default: ours).")
@click.option("--reasons", type=EXISTING_FILE, help="Rules: what new failures come from (default: ours, for our file).")
@click.option("--reason", default="", help="Why all other new failures are known; needed when there are any.")
@click.option("--remake", is_flag=True, help="Make the entries anew that were made by rules.")
@exit_codes
def expect_update(out: Path, expectations: Path, reasons: Path | None, reason: str, remake: bool) -> None:
    """Rewrite the ledger from the results of a complete run in OUT: stale entries go or are narrowed to the versions of which
    they are true, new failures come, comments stay."""
    from compat_matrix import running
    from compat_matrix.expectations.causes import DEFAULT_RULES, read_rules
    from compat_matrix.expectations.update import UpdateRefused, update
    from compat_matrix.report import agreement

    ours = expectations.samefile(DEFAULT_PATH)
    if ours and set(running.started_with(out)) & {"cases", "fixtures"}:
        raise Refused("the run was of other cases than ours, all our entries would seem dead: use --expectations", STALE)
    rules_file = reasons or (DEFAULT_RULES if ours else None)
    rules = read_rules(rules_file) if rules_file else ()
    made = Plan.read(out / PLAN_FILE)
    results = {result.cell: result for result in read_results(out / RESULTS_FILE) if result.plan_id == made.plan_id}
    if not ours:
        made = about_plugins(made, out)
    try:
        results = {cell: result for cell, result in results.items() if cell in made.by_id}
        results |= agreement.compared(made, results)
        text, judged = expectations.read_text(encoding="utf-8"), agreement.extended(made)
        done = update(text, judged, results, reason, datetime.date.today(), rules, remake)
    except UpdateRefused as error:
        raise Refused(str(error), STALE) from error
    write_text(expectations, done.text)
    for change in done.changes:
        click.echo(change)
    click.echo(f"{expectations}: {len(done.changes)} changes", err=True)


@expect.command("explain")
@click.argument("cell_id", metavar="CELL")
@plan_options
@exit_codes
def expect_explain(cell_id: str, fixtures: Path | None, cases: Path | None, expectations: Path | None) -> None:
    """Say what is expected of a cell, and by which entry."""
    from compat_matrix.report import agreement

    ledger = Ledger.read(ledger_path(expectations, fixtures, cases))
    cell = agreement.extended(_make_plan(ledger, fixtures, cases)).by_id.get(cell_id)
    if cell is None:
        raise Refused(f"no such cell: {cell_id} (savedmodel-compat matrix plan lists them)", ExitCode.USAGE)
    if cell.decided:
        click.echo(f"{cell.decided.outcome}, decided by the plan: {cell.decided.reason}")
    else:
        entry = ledger.entry_for(cell)
        click.echo(f"{entry.outcome if entry else Outcome.PASS} is expected")
    for entry in ledger.entries:
        if entry.names(cell):
            here = "applies" if entry.selects(cell) else "is for other versions"
            click.echo(f"{entry.title()} {here}: {entry.kind}, {entry.reason}")
            for name in ("error_class", "message", "producer_version", "consumer_version", "issue", "added", "until"):
                if getattr(entry, name):
                    click.echo(f"  {name}: {getattr(entry, name)}")
