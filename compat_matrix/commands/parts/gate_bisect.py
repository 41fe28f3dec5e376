"""``savedmodel-compat gate bisect``: find the first TensorFlow release in which a cell changes."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compat_matrix.commands.parts import planned
from compat_matrix.commands.parts.planned import CELL_ID, asked_runtimes, exit_codes
from compat_matrix.commands.parts.plugin_options import asked_plugins, plugin_option
from compat_matrix.commands.parts.refusing import Refused
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.lists import list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable
from savedmodel_tools.commands.parts.models import one_release

if TYPE_CHECKING:
    from compat_matrix.cells.results import Result
    from compat_matrix.gate.bisect_cell import Source
    from compat_matrix.hosts.pool import Hosts

SAID = 300  # characters of what a release says


@claims(
    green="a release is named in which the cell changes",
    asked="the cell in the oldest and the newest release, and in those that halve the range",
    not_asked="the releases between, unless the search needs them; every other cell",
    codes={ExitCode.INCOMPLETE: "the oldest and the newest release show the same"},
)
@click.command()
@click.argument("cell_id", type=CELL_ID, metavar="CELL")
@click.option(
    "--from", "first", required=True, metavar="RELEASE", help="The oldest release to ask: 2.4."
)
@click.option(
    "--to", "last", required=True, metavar="RELEASE", help="The newest release to ask: 2.21."
)
@click.option(
    "--run",
    "of",
    type=planned.RUN_FOLDER,
    help="The cell is one of this run, of `matrix run`, a gate or `check --out`: its models.",
)
@click.option(
    "--fixtures",
    type=planned.EXISTING_DIR,
    help="Your folder of artifacts, in place of all that is ours.",
)
@click.option(
    "--cases-dir",
    "cases",
    type=planned.EXISTING_DIR,
    help="Your folder of case files, in place of all that is ours.",
)
@list_option("--consumer", metavar="NAME=COMMAND", help="A consumer of yours that CELL names.")
@list_option(
    "--producer",
    metavar="NAME=FOLDER",
    help="A producer of yours that CELL names: the artifacts in a folder.",
)
@plugin_option
@planned.no_install_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/releases/results.md).")
@exit_codes
def bisect(
    cell_id: str,
    first: str,
    last: str,
    of: Path | None,
    fixtures: Path | None,
    cases: Path | None,
    consumer: tuple[str, ...],
    producer: tuple[str, ...],
    plugins: Path | None,
    no_install: bool,
    as_json: bool,
) -> int:
    """Find the first release in which CELL shows something else than in the oldest one.

    CELL is the id of a cell; the version of its consumer is replaced by each release that is asked.
    Only the releases that halve the range are asked, and installed; the TensorFlow that is here
    answers for its own release. A cell of `check`, or of a run of your own cases, is found by its
    folder (--run), or by the options of that run. Exit code 3: the oldest and the newest release
    show the same; 4: one that is needed could not be asked.

    \b
    Examples:
      savedmodel-compat gate bisect keras_compiled_save/fixture@1.15.5/tf2@2.21.0/load --from 2.15 --to 2.21
      savedmodel-compat gate bisect half_plus_two/given@1.15.5/tf2@2.21.0/values --run check-out --from 2.15 --to 2.21
    """  # noqa: E501
    from compat_matrix.cells.plan import parse_cell_id
    from compat_matrix.cells.results import one_line
    from compat_matrix.gate.bisect import bisect as search
    from compat_matrix.gate.bisect_cell import NotAsked, Source
    from compat_matrix.hosts.pool import Hosts
    from savedmodel_tools.skew.history import history

    parts, table = parse_cell_id(cell_id), history()
    low, high = one_release(first, table), one_release(last, table)
    if of and (fixtures or cases or consumer or producer or plugins):
        raise click.UsageError(
            "--run finds models and programs by itself: no other option names them"
        )
    try:
        source = (
            Source.of_run(of, cell_id)
            if of
            else Source(asked_plugins(consumer, producer, plugins), fixtures, cases)
        )
        source.check(parts)
    except NotAsked as error:
        raise click.UsageError(printable(str(error), newlines=False)) from error
    if low >= high:
        raise click.UsageError(f"--from {first} is not older than --to {last}")
    releases = [release.name for release in table.releases[low : high + 1]]
    results: dict[str, Result] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="savedmodel-compat-")))
        made = Hosts(
            folder / "hosts",
            registry=source.registry,
            cases=source.cases,
            generators=source.fixtures,
        )
        hosts = stack.enter_context(made)

        def ask(release: str) -> Result:
            result = results[release] = _result(
                parts, release, source, hosts, folder / "out", not no_install
            )
            click.echo(
                f"{release}: {result.outcome} {one_line(result.message_normalised, 120)}".rstrip(),
                err=True,
            )
            return result

        found = search(releases, ask)
    seen = {release: one_line(said, SAID) for release, said in found.seen.items()}
    if as_json:
        asked = [
            {"release": name, "outcome": str(results[name].outcome), "says": said}
            for name, said in seen.items()
        ]
        click.echo(
            json.dumps(
                {
                    "schema": 1,
                    "cell": cell_id,
                    "before": found.before,
                    "after": found.after,
                    "asked": asked,
                }
            )
        )
        return ExitCode.AS_EXPECTED if found.after else ExitCode.INCOMPLETE
    if not found.after:
        click.echo(f"nothing changes from {first} to {last}: {seen[releases[0]]}")
        return ExitCode.INCOMPLETE
    click.echo(f"changes in {found.after}")
    click.echo(f"  {found.before}: {seen[found.before]}")
    click.echo(f"  {found.after}: {seen[found.after]}")
    click.echo(f"  asked: {', '.join(seen)}")
    return ExitCode.AS_EXPECTED


def _result(
    parts: dict[str, str], release: str, source: Source, hosts: Hosts, out: Path, install: bool
) -> Result:
    """The result of the cell in one release; its artifact is made once.

    Raises Refused for a cell that is in no plan.
    """
    from compat_matrix.cells.outcomes import Outcome
    from compat_matrix.cells.plan import Plan, is_complete
    from compat_matrix.engine.loop import run_plan
    from compat_matrix.plan.made_programs import make_programs

    written_by = [".".join(parts["producer_version"].split(".")[:2])]
    writers = asked_runtimes(written_by, install) if source.needs_writer(parts) else ()
    readers = asked_runtimes([release], install)
    runtimes = tuple({runtime.name: runtime for runtime in (*writers, *readers)}.values())
    hosts.know(runtimes)
    cells, made = source.cells(parts, runtimes, readers[0])
    if not cells:
        raise Refused(
            f"no cell of {release} asks that:"
            " `savedmodel-compat matrix run --dry-run` lists the cells",
            ExitCode.USAGE,
        )
    wanted = [cell for cell in made if not is_complete(cell.artifact_dir(out))] + cells
    plan = Plan(tuple(wanted))
    make_programs(plan, set(plan.by_id), runtimes, source.registry)
    results = list(run_plan(hosts, out, plan))
    found = results[-1]
    if found.outcome is Outcome.NOT_APPLICABLE:
        raise Refused(f"{release} cannot be asked: {found.message}", ExitCode.USAGE)
    if (
        found.outcome.harness_failure or not found.outcome.observable
    ):  # no answer, so no release came with it
        raise Refused(
            f"{release} was not asked: {found.outcome} {found.message}", ExitCode.HARNESS_ERROR
        )
    return found
