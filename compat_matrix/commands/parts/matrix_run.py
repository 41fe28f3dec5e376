"""``savedmodel-compat matrix run``: the matrix of one TensorFlow, the grid of several, that of model servers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compat_matrix.cells.outcomes import ExitCode
from compat_matrix.cells.plan import NO_CONSUMER, STANDIN, parse_cell_id
from compat_matrix.commands.parts.planned import (
    asked_runtimes,
    asked_servers,
    build_standin,
    exit_codes,
    home_axes,
    jobs_option,
    ledger_path,
    plan_options,
    require_option,
    runtime_options,
    servers_only_option,
)
from compat_matrix.commands.parts.plugin_options import Chosen, plugin_option
from compat_matrix.commands.parts.refusing import Refused
from compat_matrix.commands.parts.renamed import renaming
from compat_matrix.common import toml
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.runtimes.runtime import local_runtime
from compat_matrix.verdict import Ledger

if TYPE_CHECKING:
    from compat_matrix.plan.changed import Changes

GRID_FILE = Path(__file__).parents[2] / "grid.toml"
NAMES = re.compile(r"[\s,]+")


@click.command("run", cls=renaming(cases="--cases-dir"))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The output folder.")
@click.option("--grid", is_flag=True, help="Every RUNTIME writes, every RUNTIME reads what each of them wrote.")
@servers_only_option
@jobs_option
@click.option("-k", "expression", help="Only cells whose id fits this pytest expression.")
@click.option(
    "--case", "case", multiple=True, metavar="NAME", help="Only this case, also by comma (* is allowed; may be repeated)."
)
@click.option("--producer", multiple=True, metavar="NAME", help="Only this producer; NAME=FOLDER: the artifacts in a folder.")
@click.option("--consumer", multiple=True, metavar="NAME", help="Only this consumer; NAME=COMMAND: a program of yours.")
@click.option("--check", multiple=True, metavar="NAME", help="Only this check.")
@click.option("--cell", "cells", multiple=True, metavar="ID", help="Only this cell.")
@click.option("--changed-since", metavar="REVISION", help="Only cases and runtimes that changed since this git revision.")
@click.option("--resume", is_flag=True, help="Keep the results of an interrupted run of the same plan, run what is missing.")
@click.option("--no-install", is_flag=True, help="With --grid: do not make the environments that are missing.")
@click.option("--no-build", is_flag=True, help="With --servers-only: do not make the stand-in's image where it is missing.")
@require_option
@plan_options
@plugin_option
@runtime_options
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
@exit_codes
def run(
    out: Path,
    grid: bool,
    servers_only: bool,
    processes: int | None,
    expression: str | None,
    cells: tuple[str, ...],
    changed_since: str | None,
    resume: bool,
    no_install: bool,
    no_build: bool,
    require: bool | str,
    fixtures: Path | None,
    cases: Path | None,
    expectations: Path | None,
    plugins: Path | None,
    runtimes: tuple[str, ...],
    all_checks: bool,
    servers: tuple[str, ...],
    case: tuple[str, ...],
    pytest_args: tuple[str, ...],
    **selectors: tuple[str, ...],
) -> int:
    """Run the matrix and write results.jsonl, summary.json, junit.xml and report.html to the output folder.

    With --grid several TensorFlows read what each of them writes (default: those of grid.toml, which are installed where they
    are missing, and its cases); the report shows a table for each pair. With --servers-only each model is put behind model
    servers (default: those of COMPAT_SERVERS, or the stand-in). A server that is not here leaves its cells NOT_RUN, with the
    command that would provide it.

    Arguments behind -- go to pytest (-x, -v, ...). A selection includes the production of the artifacts it asks about.
    """
    from compat_matrix.engine import running
    from compat_matrix.plan.changed import affected
    from compat_matrix.plan.planning import Axes, make_plan, plugin_cases

    if grid and (servers or servers_only):
        raise click.UsageError("--grid is about TensorFlows: a run without it asks servers")
    selectors["case"] = tuple(_split(case))
    given = _without_consumers(selectors, plugins) if servers_only else Chosen.of(selectors, plugins)
    selectors, registry = dict(given.selectors), given.registry
    only: list[str] = []
    said: dict[str, Sequence[str]] = {}
    text = ledger_text(ledger_path(expectations, fixtures, cases), registry)
    changes = _changes(changed_since) if changed_since else None
    if grid:
        defaults = toml.parse(GRID_FILE.read_text(encoding="utf-8"))
        names, usual = _split(runtimes) or defaults["runtimes"], () if fixtures or cases else defaults["cases"]
        axes = Axes(asked_runtimes(names, install=not no_install))
        producers = set(registry.producers)
        only = _cases_of_grid(selectors.pop("case"), usual, changes, plugin_cases(registry, axes.runtimes))
        said = {"grid": names, "case": only}
        selectors["consumer"] += (NO_CONSUMER,) if selectors["consumer"] else ()
    elif servers_only:
        specs = servers or tuple(os.environ.get("COMPAT_SERVERS", "").split()) or (STANDIN,)
        here = asked_runtimes(runtimes) if runtimes else (local_runtime(),)
        axes = Axes((*here, *asked_servers(specs, None if no_build else build_standin)), served_only=True)
        producers = registry.planned(selectors["producer"])
        said = {"server": specs}
        selectors["consumer"] = tuple(sorted({one.consumer for one in axes.runtimes if one.server}))
    else:
        axes = home_axes(asked_runtimes(runtimes) + asked_servers(servers), all_checks)
        producers = registry.planned({*selectors["producer"], *(parse_cell_id(cell)["producer"] for cell in cells)})
    plan = make_plan(Ledger.parse(text), fixtures, cases, axes, producers, only, registry)
    chosen = running.select(plan, selectors, cells)
    if servers_only:  # also what nobody will ask about, when nothing is selected: a whole run is what the ledger is judged by
        artifacts = {cell.artifact_id for cell in plan if cell.id in chosen and not cell.decided}
        whole = artifacts and not any([*given.selectors.values(), cells])
        chosen |= {cell.id for cell in plan if cell.is_production and (whole or cell.artifact_id in artifacts)}
    if changes:
        chosen &= affected(plan, changes, axes.runtimes)
        if not chosen:
            raise Refused(f"nothing that a selected cell depends on changed since {changed_since}", ExitCode.USAGE)
        said["changed_since"] = [changed_since or ""]
    said = {**given.selectors, "cell": cells, "k": [expression] if expression else (), **said}
    order = running.Order(
        plan,
        chosen,
        text,
        axes.runtimes,
        (*given.words, *(["--all-checks"] if all_checks else [])),
        running.selection_of(said, fixtures, cases),
        processes,
        resume,
        require,
        pytest_args + (("-k", expression) if expression else ()),
        registry,
    )
    return int(running.carry_out(out.resolve(), order)["exit_code"])


def _split(values: Sequence[str]) -> list[str]:
    return [name for value in values for name in NAMES.split(value) if name]


def _without_consumers(selectors: Mapping[str, tuple[str, ...]], plugins: Path | None) -> Chosen:
    """What a command line chooses whose consumers are servers."""
    if selectors["consumer"]:
        raise click.UsageError("the consumers are servers here (--server); a run without --servers-only asks another program")
    given = Chosen.of({axis: names for axis, names in selectors.items() if axis != "consumer"}, plugins)
    if plugins and not given.registry.theirs[1]:
        raise click.UsageError(f"{plugins} declares no producer, and a consumer of somebody else's is no server")
    return given


def _cases_of_grid(named: Sequence[str], usual: Sequence[str], changes: Changes | None, theirs: Iterable[str]) -> list[str]:
    """The cases of a grid: those named, or the usual ones, and of somebody who brings plug-ins along ``theirs``."""
    patterns = list(named or usual)
    if changes:  # also a case that is not among the usual ones
        patterns = sorted({*patterns, *changes.cases} if changes.locks else changes.cases)
    return patterns if named else [*patterns, *sorted(theirs)]


def _changes(revision: str) -> Changes | None:
    """What changed since a git revision, told on stderr; None when everything has to run. Raises Refused."""
    from compat_matrix.plan.changed import ChangesUnknown, changed_since

    try:
        changes = changed_since(revision)
    except ChangesUnknown as error:
        raise Refused(str(error), ExitCode.USAGE) from error
    if changes.everything:
        click.echo(f"{changes.everything} changed: everything has to run", err=True)
        return None
    if not changes.cases and not changes.locks:
        raise Refused(f"nothing that a cell depends on changed since {revision}", ExitCode.USAGE)
    for what, names, told in (("cases", changes.cases, "of"), ("locks of runtimes", changes.locks, "with")):
        if names:
            click.echo(f"changed {what}: {', '.join(sorted(names))}: every cell {told} one of them", err=True)
    return changes
