"""Common parts of commands that make a plan: its options, the runtimes and servers that are asked,
exit codes of errors.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compat_matrix.cells.plan import PLAN_FILE, Plan, PlanError, parse_cell_id
from compat_matrix.cells.registry import OURS
from compat_matrix.cells.results import ResultsError
from compat_matrix.commands.parts import completion
from compat_matrix.commands.parts.refusing import EXISTING_FILE, Refused, refusing_trouble
from compat_matrix.runtimes.runtime import LOCAL, Runtime, local_runtime
from compat_matrix.verdict import DEFAULT_PATH, NO_ENTRIES, Ledger, LedgerError
from savedmodel_common.command_line.lists import Choice, list_option, servers_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, printable

if TYPE_CHECKING:
    from compat_matrix.plan.planning import Axes

STALE = ExitCode.STALE_EXPECTATION


class _CellId(click.ParamType):  # type: ignore[type-arg]  # generic in some releases of click
    """The id of a cell."""

    name = "cell"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parse_cell_id(value)
        except PlanError as error:
            self.fail(str(error), param, ctx)
        return str(value)


CELL_ID = _CellId()
EXISTING_DIR = click.Path(exists=True, file_okay=False, path_type=Path)


class RunFolder(click.Path):
    """The output folder of a run that was begun."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if not (path / PLAN_FILE).is_file():
            reason = (
                f"{path} is not the output folder of a run: it has no {PLAN_FILE} (`matrix run"
                " --out` writes one)."
            )
            self.fail(printable(reason, newlines=False), param, ctx)
        return path


RUN_FOLDER = RunFolder(exists=True, file_okay=False, path_type=Path)


def exit_codes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn errors into exit codes: a bad ledger is 2; a plan, a result file or a runtime that
    cannot be used is 4.
    """

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        from compat_matrix.engine.sessions import RunError
        from compat_matrix.plan.planning import NothingToPlan

        try:
            with refusing_trouble():
                return function(*args, **kwargs)
        except LedgerError as error:
            raise Refused(str(error), STALE) from error
        except (PlanError, ResultsError) as error:
            usage = isinstance(error, NothingToPlan)
            raise Refused(
                str(error), ExitCode.USAGE if usage else ExitCode.HARNESS_ERROR
            ) from error
        except RunError as error:
            raise Refused(
                str(error), ExitCode.HARNESS_ERROR if error.harness else ExitCode.USAGE
            ) from error

    return wrapped


def maker_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose producers and consumers, ours or those of the user."""
    for option, values, text in (
        (
            "--consumer",
            completion.consumers,
            "Only this consumer; several by commas. NAME=COMMAND: a program of yours.",
        ),
        (
            "--producer",
            completion.producers,
            "Only this producer; several by commas. NAME=FOLDER: the artifacts in a folder.",
        ),
    ):
        function = list_option(option, metavar="NAME", shell_complete=values, help=text)(function)
    return function


def plan_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what the plan is made of."""
    for option in (
        click.option(
            "--fixtures",
            type=EXISTING_DIR,
            help="Use the artifacts in this folder, not those of the project.",
        ),
        click.option(
            "--cases-dir",
            "cases",
            type=EXISTING_DIR,
            help="Use the case files in this folder, not those of the project.",
        ),
        click.option(
            "--expectations",
            type=EXISTING_FILE,
            help="Ledger of known failures. Default: the project's; none for your own models.",
        ),
    ):
        function = option(function)
    return function


def ledger_path(expectations: Path | None, fixtures: Path | None, cases: Path | None) -> Path:
    """Our ledger speaks of our artifacts only: about others it has nothing but dead entries to
    say.
    """
    return expectations or (NO_ENTRIES if fixtures or cases else DEFAULT_PATH)


case_option = list_option(
    "--case",
    metavar="NAME",
    shell_complete=completion.cases,
    help="Only this case (* is allowed); several by commas.",
)
server_option = servers_option(
    "--server",
    "servers",
    shell_complete=completion.servers,
    help=(
        "Also ask this model server: an image (tensorflow/serving:2.19.1, a digest), standin,"
        " standin@RUNTIME, binary:PATH, remote:HOST:PORT,PORT; several by commas."
    ),
)
servers_only_option = click.option(
    "--servers-only",
    is_flag=True,
    help=("Ask only model servers, over gRPC and REST. TensorFlow only writes the models."),
)


def runtime_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which TensorFlows answer."""
    for option in (
        click.option(
            "--runtime",
            "runtimes",
            multiple=True,
            metavar="RUNTIME",
            shell_complete=completion.runtimes,
            help=(
                "TensorFlow to ask: local, 2.12, tensorflow==2.20.0, a wheel, an interpreter;"
                " several by commas. LABEL=RUNTIME distinguishes two of one version. Every check"
                " runs in the first one. Default: local, and those of COMPAT_RUNTIMES."
            ),
        ),
        click.option("--all-checks", is_flag=True, help="Make every check in every runtime."),
        server_option,
    ):
        function = option(function)
    return function


dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    help="Run nothing: list the cells that would run, and the others with the reason.",
)
no_install_option = click.option(
    "--no-install",
    is_flag=True,
    help="Do not make what is missing: environments, the image of the stand-in.",
)
pytest_arguments = click.argument(
    "pytest_args", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST OPTIONS]"
)


def list_cells(plan: Plan, chosen: Collection[str], as_json: bool) -> int:
    """Show the chosen cells of a plan, and those that do not run with the reason. Return 0."""
    cells = tuple(cell for cell in plan if cell.id in chosen)
    if as_json:
        click.echo(json.dumps(Plan(cells, plan.narrowed).to_json()))
        return ExitCode.AS_EXPECTED
    for cell in cells:
        reason = f"  {cell.decided.outcome}: {cell.decided.reason}" if cell.decided else ""
        click.echo(f"{cell.id}{reason}")
    counts = Counter(str(cell.decided.outcome) if cell.decided else "to run" for cell in cells)
    told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    click.echo(f"{counted(len(cells), 'cell')}: {told}", err=True)
    return ExitCode.AS_EXPECTED


jobs_option = click.option(
    "-n",
    "--jobs",
    "processes",
    type=click.IntRange(1, 64),
    help="Processes. Default: by CPUs, free memory and number of cells.",
)


def require_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--require`` and ``--require serving``; the value is True, "serving" or False."""
    return click.option(
        "--require",
        is_flag=False,
        flag_value="all",
        default=None,
        type=Choice(["all", "serving"]),
        callback=lambda _context, _option, value: {None: False, "all": True}.get(value, value),
        help=(
            "Fail if a cell does not run, whatever the reason. `serving`: only cells that need a"
            " model server."
        ),
    )(function)


def past_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that give worker processes another past."""
    for option in (
        click.option(
            "--past",
            type=click.IntRange(0),
            metavar="SEED",
            help=(
                "Give worker processes another history, drawn from SEED: environment, counters,"
                " earlier models, order of the cells. 0: a new process for each cell."
            ),
        ),
        click.option(
            "--pasts",
            type=click.IntRange(1),
            metavar="N",
            help="Run with --past 0 to N, and compare the results of each cell.",
        ),
    ):
        function = option(function)
    return function


def home_axes(runtimes: Sequence[Runtime] = (), all_checks: bool = False) -> Axes:
    """The axes of a matrix: the first runtime (default: the local one) is asked everything, or with
    ``all_checks`` all are.
    """
    from compat_matrix.checks import CHECKS
    from compat_matrix.plan.planning import Axes

    runtimes = tuple(runtimes) or (local_runtime(),)
    return Axes(runtimes, home=(runtimes[0].name,), checks=tuple(CHECKS) if all_checks else None)


def planned(ledger: Ledger, fixtures: Path | None, cases: Path | None) -> Plan:
    """The plan of the local runtime. Raises PlanError."""
    from compat_matrix.plan.planning import make_plan

    return make_plan(ledger, fixtures, cases, home_axes(), OURS.planned(()), registry=OURS)


def asked_runtimes(specs: Sequence[str], install: bool = False) -> tuple[Runtime, ...]:
    """The runtimes a command line names; without any the local one and those of COMPAT_RUNTIMES.

    ``install`` makes what is not here, after all of them have been resolved. Raises RuntimeTrouble.
    """
    from compat_matrix.runtimes.places import NotInstalled
    from compat_matrix.runtimes.resolve import provide_all, resolve_labelled

    asked = specs or (LOCAL, *filter(None, [os.environ.get("COMPAT_RUNTIMES")]))
    missing: list[str] = []
    for spec in asked:
        try:
            resolve_labelled(spec)
        except NotInstalled as error:
            if not install:
                raise
            missing += error.specs
    provide_all(missing, lambda spec, doing: click.echo(f"{spec}: {doing}", err=True))
    return tuple(itertools.chain.from_iterable(map(resolve_labelled, asked)))


def asked_servers(
    specs: Sequence[str], build: Callable[[], None] | None = None
) -> tuple[Runtime, ...]:
    """The servers a command line names, here or not. Raises Refused for what names none."""
    from compat_matrix.hosts.servers import runtimes_of

    try:
        return tuple(runtimes_of(specs, build))
    except ValueError as error:
        raise Refused(str(error), ExitCode.USAGE) from error


def build_standin() -> None:
    """Make the stand-in's image where an engine is there and it is not; what is missing is told by
    the plan.
    """
    from compat_matrix.hosts.servers import starter

    starter().build_standin_image(
        lambda image: click.echo(f"image of the stand-in: {image}", err=True)
    )
