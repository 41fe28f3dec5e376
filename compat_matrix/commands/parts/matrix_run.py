"""``savedmodel-compat matrix run``: the matrix of one TensorFlow, the grid of several, that of
model servers.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import click

from compat_matrix.cells.plan import NO_CONSUMER, STANDIN, parse_cell_id
from compat_matrix.commands.parts import completion, planned
from compat_matrix.commands.parts.plugin_options import Chosen, plugin_option
from compat_matrix.commands.parts.refusing import Refused
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.runtimes.runtime import local_runtime
from compat_matrix.verdict import Ledger
from savedmodel_common import toml
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option, quiet_option
from savedmodel_common.command_line.lists import list_option
from savedmodel_common.exit_codes import ExitCode

if TYPE_CHECKING:
    from compat_matrix.plan.changed import Changes
    from compat_matrix.plan.planning import Axes
    from compat_matrix.runtimes.runtime import Runtime

GRID_FILE = Path(__file__).parents[2] / "grid.toml"


@claims(
    green="every cell is as the ledger and the op history expect",
    asked=lambda: _claimed(asked=True),
    not_asked=lambda: _claimed(asked=False),
    codes={
        ExitCode.UNEXPECTED: "a cell failed unexpectedly, or otherwise than expected",
        ExitCode.STALE_EXPECTATION: "an entry of the ledger is stale",
        ExitCode.INCOMPLETE: (
            "a cell has no result, nothing was compared, or something named was not asked"
        ),
    },
)
@click.command("run")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The output folder.")
@click.option(
    "--grid",
    is_flag=True,
    help="Every RUNTIME writes models, and every RUNTIME reads all of them.",
)
@planned.servers_only_option
@planned.jobs_option
@click.option("-k", "expression", help="Only cells whose id matches this pytest expression.")
@planned.case_option
@planned.maker_options
@list_option(
    "--check",
    metavar="NAME",
    shell_complete=completion.checks,
    help="Only this check; several by commas.",
)
@list_option(
    "--cell", "cells", type=planned.CELL_ID, metavar="ID", help="Only this cell; several by commas."
)
@click.option(
    "--changed-since",
    metavar="REVISION",
    help="Only cases and runtimes that changed since this git revision.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue an interrupted run of the same plan: run only the missing cells.",
)
@planned.no_install_option
@planned.require_option
@planned.past_options
@planned.plan_options
@plugin_option
@planned.runtime_options
@planned.dry_run_option
@json_option("summary.json (with --dry-run, the plan)")
@quiet_option
@planned.pytest_arguments
@planned.exit_codes
def run(
    out: Path | None,
    grid: bool,
    servers_only: bool,
    processes: int | None,
    expression: str | None,
    cells: tuple[str, ...],
    changed_since: str | None,
    resume: bool,
    no_install: bool,
    require: bool | str,
    past: int | None,
    pasts: int | None,
    fixtures: Path | None,
    cases: Path | None,
    expectations: Path | None,
    plugins: Path | None,
    runtimes: tuple[str, ...],
    all_checks: bool,
    servers: tuple[str, ...],
    case: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    pytest_args: tuple[str, ...],
    **selectors: tuple[str, ...],
) -> int:
    """Run the matrix and write report.html, results.jsonl, summary.json and junit.xml to --out.

    --grid: every TensorFlow reads the models that each of the others writes. The report has a table
    for each pair. Default: the releases and cases of grid.toml; missing releases are installed.

    --servers-only: every model is put behind model servers. Default: those of COMPAT_SERVERS, or
    the stand-in. Cells of a missing server are NOT_RUN, with the command that would provide it.

    --pasts: every cell runs several times, in processes with different histories. A cell whose
    result depends on the history fails. Each run has its own folder; pasts.json compares them.

    A cell with an unexpected result runs once more, in a new process. If the results differ, the
    cell is UNSTABLE, which also fails the run. The reports show both results.

    If you select cells, the artifacts that they need are made too. Options after -- are passed to
    pytest (-x, -v, ...).

    \b
    Examples:
      savedmodel-compat matrix run --out compat-out
      savedmodel-compat matrix run --out compat-out --case 'tree_*' --consumer tf2
      savedmodel-compat matrix run --case 'tree_*' --dry-run
      savedmodel-compat matrix run --grid --runtime 2.12,2.21 --out grid-out
      savedmodel-compat matrix run --servers-only --server tensorflow/serving:2.19.1 --out serving-out
      savedmodel-compat matrix run --pasts 2 --case 'fn_*' --consumer reference --out pasts-out
    """  # noqa: E501
    from rich.console import Console

    from compat_matrix.engine import pasts as several
    from compat_matrix.engine import running
    from compat_matrix.engine.sessions import QUIET
    from compat_matrix.plan.changed import affected
    from compat_matrix.plan.planning import make_plan

    _check_usage(grid, servers_only, servers, no_install, all_checks)
    _check_pasts(past, pasts, servers_only)
    if dry_run and (expression or pytest_args):
        raise click.UsageError(
            "--dry-run lists cells that --case, --consumer and the like choose; -k and the rest are"
            " pytest's"
        )
    if out is None and not dry_run:
        raise click.UsageError("say where the result goes (--out DIRECTORY), or --dry-run")
    selectors["case"] = case
    given = (
        _without_consumers(selectors, plugins) if servers_only else Chosen.of(selectors, plugins)
    )
    text = ledger_text(planned.ledger_path(expectations, fixtures, cases), given.registry)
    changes = _changes(changed_since) if changed_since else None
    if grid:
        asked = _of_grid(
            given,
            runtimes,
            changes,
            not (fixtures or cases),
            not (no_install or dry_run),
            all_checks,
        )
    elif servers_only:
        asked = _of_servers(
            given, runtimes, servers, None if no_install or dry_run else planned.build_standin
        )
    else:
        asked = _of_matrix(
            given,
            planned.asked_runtimes(runtimes) + planned.asked_servers(servers),
            all_checks,
            cells,
        )
    plan = make_plan(
        Ledger.parse(text), fixtures, cases, asked.axes, asked.producers, asked.only, given.registry
    )
    chosen = running.select(plan, asked.selectors, cells)
    # also what nobody will ask about, when nothing is selected: a whole run is what the ledger is
    # judged by
    if servers_only:
        artifacts = {cell.artifact_id for cell in plan if cell.id in chosen and not cell.decided}
        whole = artifacts and not any([*given.selectors.values(), cells])
        chosen |= {
            cell.id
            for cell in plan
            if cell.is_production and (whole or cell.artifact_id in artifacts)
        }
    if changes:
        chosen &= affected(plan, changes, asked.axes.runtimes)
        if not chosen:
            raise Refused(
                f"nothing that a selected cell depends on changed since {changed_since}",
                ExitCode.USAGE,
            )
    if out is None or dry_run:
        return planned.list_cells(plan, running.with_needed(plan, chosen), as_json)
    said: dict[str, Sequence[str]] = {"cell": cells, "k": [expression] if expression else ()}
    said["changed_since"] = [changed_since] if changes and changed_since else ()
    order = running.Order(
        plan,
        chosen,
        text,
        asked.axes.runtimes,
        (*given.words, *(["--all-checks"] if all_checks else [])),
        running.selection_of({**given.selectors, **said, **asked.said}),
        processes,
        resume,
        require,
        pytest_args + (("-k", expression) if expression else ()) + ((QUIET,) if quiet else ()),
        given.registry,
        named=(
            {}
            if expression or changes
            else _named(given.selectors, cells, asked.axes.runtimes, bool(runtimes), bool(servers))
        ),
        folders=running.folders_of(fixtures, cases),
    )
    console = Console(quiet=True) if as_json else None
    if pasts is not None:
        summary = several.carry_out(out.resolve(), order, pasts, console)
    else:
        asked_order = order if past is None else several.in_past(order, past)
        summary = running.carry_out(out.resolve(), asked_order, console)
    if as_json:
        click.echo(json.dumps(summary))
    return int(summary["exit_code"])


def _named(
    selectors: Mapping[str, Sequence[str]],
    cells: Sequence[str],
    asked: Sequence[Runtime],
    runtimes: bool,
    servers: bool,
) -> dict[str, Sequence[str]]:
    """Return the names that must all be asked.

    With cells, the rest of the command line only says where they come from.

    ``asked``: the runtimes of the plan; ``runtimes``, ``servers``: the command line named those
    that are TensorFlows, or servers.
    """
    if cells:
        return {"cell": cells}
    named = [one.name for one in asked if (servers if one.server else runtimes)]
    return {**{axis: names for axis, names in selectors.items() if names}, "runtime": named}


class _Asked(NamedTuple):
    """The axes of a plan, the patterns that select its cells, and the description for run.json."""

    axes: Axes
    producers: Collection[str]
    selectors: Mapping[str, Sequence[str]]
    only: Sequence[str] = ()
    said: Mapping[str, Sequence[str]] = MappingProxyType({})


def _of_matrix(
    given: Chosen, runtimes: Sequence[Runtime], all_checks: bool, cells: Sequence[str]
) -> _Asked:
    producers = {*given.selectors["producer"], *(parse_cell_id(cell)["producer"] for cell in cells)}
    return _Asked(
        planned.home_axes(runtimes, all_checks), given.registry.planned(producers), given.selectors
    )


def _of_servers(
    given: Chosen, runtimes: Sequence[str], servers: Sequence[str], build: Callable[[], None] | None
) -> _Asked:
    from compat_matrix.plan.planning import Axes

    specs = tuple(servers) or tuple(os.environ.get("COMPAT_SERVERS", "").split()) or (STANDIN,)
    found = planned.asked_servers(specs, build)
    axes = Axes(
        ((planned.asked_runtimes(runtimes) if runtimes else (local_runtime(),)) + found),
        served_only=True,
    )
    selectors = {**given.selectors, "consumer": sorted({one.consumer for one in found})}
    return _Asked(
        axes, given.registry.planned(given.selectors["producer"]), selectors, said={"server": specs}
    )


def _of_grid(
    given: Chosen,
    runtimes: Sequence[str],
    changes: Changes | None,
    ours: bool,
    install: bool,
    all_checks: bool,
) -> _Asked:
    """``ours``: the cases are the project's own. The usual ones are asked where none is named."""
    from compat_matrix.checks import CHECKS
    from compat_matrix.plan.planning import Axes, plugin_cases
    from compat_matrix.runtimes.resolve import split

    defaults = toml.read(GRID_FILE)
    named_runtimes = itertools.chain.from_iterable(map(split, runtimes))
    names = list(named_runtimes) or list(defaults["runtimes"])
    axes = Axes(
        planned.asked_runtimes(names, install=install), checks=tuple(CHECKS) if all_checks else None
    )
    selectors = dict(given.selectors)
    named = selectors.pop("case")
    only = list(named or (defaults["cases"] if ours else ()))
    if changes:  # also a case that is not among the usual ones
        only = sorted({*only, *changes.cases} if changes.locks else changes.cases)
    if ours and not named:  # a user with plug-ins wants their models too
        only += sorted(plugin_cases(given.registry, axes.runtimes))
    selectors["consumer"] += (NO_CONSUMER,) if selectors["consumer"] else ()
    return _Asked(
        axes, set(given.registry.producers), selectors, only, {"grid": names, "case": only}
    )


def _check_usage(
    grid: bool,
    servers_only: bool,
    servers: Sequence[str],
    no_install: bool,
    all_checks: bool,
) -> None:
    """Raises UsageError for options that would have no effect."""
    if grid and (servers or servers_only):
        raise click.UsageError("--grid is about TensorFlows: a run without it asks servers")
    if no_install and not (grid or servers_only):
        raise click.UsageError(
            "--no-install belongs to --grid and --servers-only: other runs install nothing"
        )
    if all_checks and servers_only:
        raise click.UsageError("--all-checks is about TensorFlows: servers are asked everything")


def _check_pasts(past: int | None, pasts: int | None, servers_only: bool) -> None:
    """Raises UsageError for pasts that cannot be had."""
    if past is not None and pasts is not None:
        raise click.UsageError(
            "--past is for one run in that past, --pasts for a comparison of several: choose one"
        )
    if servers_only and (past is not None or pasts is not None):
        raise click.UsageError(
            "--past and --pasts are about worker processes: a server starts as its image says"
        )


def _without_consumers(selectors: Mapping[str, tuple[str, ...]], plugins: Path | None) -> Chosen:
    """Return the choice of a command line whose consumers are servers."""
    if selectors["consumer"]:
        raise click.UsageError(
            "the consumers are servers here (--server); a run without --servers-only asks another"
            " program"
        )
    given = Chosen.of(
        {axis: names for axis, names in selectors.items() if axis != "consumer"}, plugins
    )
    if plugins and not given.registry.theirs[1]:
        raise click.UsageError(
            f"{plugins} declares no producer, and plug-in consumers are not servers"
        )
    return given


def _changes(revision: str) -> Changes | None:
    """Return the changes since a git revision, told on stderr; None when everything has to run.

    Raises Refused.
    """
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
    for what, names, told in (
        ("cases", changes.cases, "of"),
        ("locks of runtimes", changes.locks, "with"),
    ):
        if names:
            click.echo(
                f"changed {what}: {', '.join(sorted(names))}: every cell {told} one of them",
                err=True,
            )
    return changes


def _claimed(asked: bool) -> str:
    """Return what a run without options asks, or what it does not."""
    from compat_matrix.cells.registry import OURS
    from compat_matrix.checks import CHECKS, SERVE_CHECKS
    from compat_matrix.plan.planning import FROZEN, READS

    if asked:
        return (
            f"the checks {', '.join(CHECKS)} of every case and fixture (of {FROZEN}:"
            f" {', '.join(READS)}), in the first runtime"
        )
    unusual = ", ".join(one.name for one in OURS.producers.values() if not one.usual)
    return (
        "in every other runtime, and in a grid, all checks but one of each artifact, values or"
        f" else load (--all-checks; the report lists them); {', '.join(SERVE_CHECKS)} (--server);"
        f" the producers {unusual} (--producer); cells whose program is missing are NOT_RUN"
        " (--require)"
    )
