"""Plan, run and report the compatibility matrix.

Task: Compare TensorFlows
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from pathlib import Path

import click

from compat_matrix.cells.plan import parse_cell_id
from compat_matrix.cli import Group
from compat_matrix.commands.parts.expect import expect
from compat_matrix.commands.parts.planned import (
    EXISTING_DIR,
    asked_runtimes,
    asked_servers,
    exit_codes,
    jobs_option,
    ledger_path,
    plan_options,
    planned,
    require_option,
    runtime_options,
)
from compat_matrix.commands.parts.plugin_options import Chosen, asked_plugins, plugin_option
from compat_matrix.commands.parts.renamed import renaming
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.verdict import Ledger


@click.group(cls=Group)
def matrix() -> None:
    """Plan, run and report the compatibility matrix.

    \b
    Exit codes, the first that applies: 64 usage or an empty selection, 4 harness or environment error,
    1 unexpected failure or other error, 2 stale expectation (a listed cell passes, a dead, too wide,
    overlapping or expired entry, an invalid file), 3 incomplete run or nothing compared, 0 as expected.
    An interrupted command (SIGINT, SIGTERM) ends with 130 and gives no verdict.
    """


@matrix.command(cls=renaming(cases="--cases-dir"))
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
    made = planned(ledger, fixtures, cases, asked, all_checks, producer, registry)
    if as_json:
        click.echo(json.dumps(made.to_json()))
        return
    for cell in made:
        click.echo(cell.id + (f"  {cell.decided.outcome}: {cell.decided.reason}" if cell.decided else ""))
    decided = Counter(str(cell.decided.outcome) if cell.decided else "to run" for cell in made)
    click.echo(f"{len(made.cells)} cells: " + ", ".join(f"{count} {what}" for what, count in sorted(decided.items())), err=True)


@matrix.command(cls=renaming(cases="--cases-dir"))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The output folder.")
@jobs_option
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
    from compat_matrix.engine import running

    given = Chosen.of(selectors, plugins)
    text = ledger_text(ledger_path(expectations, fixtures, cases), given.registry)
    asked = asked_runtimes(runtimes) + asked_servers(servers)
    producers = {*given.selectors["producer"], *(parse_cell_id(cell)["producer"] for cell in cells)}
    made = planned(Ledger.parse(text), fixtures, cases, asked, all_checks, producers, given.registry)
    chosen = running.select(made, given.selectors, cells)
    asked_of = {**given.selectors, "cell": cells, "k": (expression,) if expression else ()}
    if expression:
        pytest_args += ("-k", expression)
    order = running.Order(
        made,
        chosen,
        text,
        asked,
        [*given.words, *(["--all-checks"] if all_checks else [])],
        running.selection_of(asked_of, fixtures, cases),
        processes,
        resume,
        require,
        pytest_args,
        given.registry,
    )
    return int(running.carry_out(out.resolve(), order)["exit_code"])


@matrix.command()
@click.argument("out", type=EXISTING_DIR)
@exit_codes
def report(out: Path) -> int:
    """Judge and render a run again, from the files in its folder alone; ends with the exit code of that run."""
    from compat_matrix.engine import running

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
    from compat_matrix.cells.results import one_line
    from compat_matrix.gate.compare import KINDS, compare
    from compat_matrix.gate.drift import drifts
    from compat_matrix.gate.pairs import Run, pairs_of_folders
    from compat_matrix.report.gate_words import KIND_WORDS, drift_words, side_words

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


matrix.add_command(expect)
