"""Find the first TensorFlow release in which a cell changes.

Task: Compare TensorFlows
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compat_matrix.commands.parts.models import one_release
from compat_matrix.commands.parts.planned import CELL_ID, asked_runtimes, exit_codes
from compat_matrix.commands.parts.refusing import Refused
from compat_matrix.common.exit_codes import ExitCode
from compat_matrix.common.printable import unknown

if TYPE_CHECKING:
    from compat_matrix.cells.results import Result
    from compat_matrix.hosts.pool import Hosts

SAID = 300  # characters of what a release says


@click.command()
@click.argument("cell_id", type=CELL_ID, metavar="CELL")
@click.option("--from", "first", required=True, metavar="RELEASE", help="The oldest release to ask: 2.4.")
@click.option("--to", "last", required=True, metavar="RELEASE", help="The newest release to ask: 2.21.")
@click.option("--no-install", is_flag=True, help="Do not install a release that is missing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/contracts.md).")
@exit_codes
def bisect(cell_id: str, first: str, last: str, no_install: bool, as_json: bool) -> int:
    """Find the first release in which CELL shows something else than in the oldest one.

    CELL is the id of a cell; the version of its consumer is replaced by each release that is asked. Only the releases that halve
    the range are asked, and installed. Exit code 3: the oldest and the newest release show the same.

    \b
    Examples:
      savedmodel-compat bisect keras_compiled_save/fixture@1.15.5/tf2@2.21.0/load --from 2.15 --to 2.21
    """
    from compat_matrix.cells.plan import parse_cell_id
    from compat_matrix.cells.registry import OURS
    from compat_matrix.cells.results import one_line
    from compat_matrix.checks import CHECKS
    from compat_matrix.gate.bisect import bisect as search
    from compat_matrix.hosts.pool import Hosts
    from compat_matrix.skew.history import history

    parts, table = parse_cell_id(cell_id), history()
    low, high = one_release(first, table), one_release(last, table)
    for what, names in (("producer", OURS.producers), ("consumer", OURS.consumers), ("check", CHECKS)):
        if wrong := unknown(what, [parts[what]], names):
            raise click.UsageError(wrong)
    if low >= high:
        raise click.UsageError(f"--from {first} is not older than --to {last}")
    releases = [release.name for release in table.releases[low : high + 1]]
    results: dict[str, Result] = {}
    with tempfile.TemporaryDirectory(prefix="savedmodel-compat-") as folder, Hosts(Path(folder) / "hosts") as hosts:

        def ask(release: str) -> Result:
            result = results[release] = _result(parts, release, hosts, Path(folder) / "out", not no_install)
            click.echo(f"{release}: {result.outcome} {one_line(result.message_normalised, 120)}".rstrip(), err=True)
            return result

        found = search(releases, ask)
    seen = {release: one_line(said, SAID) for release, said in found.seen.items()}
    if as_json:
        asked = [{"release": name, "outcome": str(results[name].outcome), "says": said} for name, said in seen.items()]
        click.echo(json.dumps({"schema": 1, "cell": cell_id, "before": found.before, "after": found.after, "asked": asked}))
        return ExitCode.AS_EXPECTED if found.after else ExitCode.INCOMPLETE
    if not found.after:
        click.echo(f"nothing changes from {first} to {last}: {seen[releases[0]]}")
        return ExitCode.INCOMPLETE
    click.echo(f"changes in {found.after}")
    click.echo(f"  {found.before}: {seen[found.before]}")
    click.echo(f"  {found.after}: {seen[found.after]}")
    click.echo(f"  asked: {', '.join(seen)}")
    return ExitCode.AS_EXPECTED


def _result(parts: dict[str, str], release: str, hosts: Hosts, out: Path, install: bool) -> Result:
    """The result of the cell in one release; its artifact is made once. Raises Refused for a cell that is in no plan."""
    from compat_matrix.cells.outcomes import Outcome
    from compat_matrix.cells.plan import Plan, is_complete
    from compat_matrix.engine.loop import run_plan
    from compat_matrix.plan.planning import Axes, make_plan
    from compat_matrix.verdict import Ledger

    fixture = parts["producer"] == "fixture"
    writers = () if fixture else asked_runtimes([".".join(parts["producer_version"].split(".")[:2])], install)
    readers = asked_runtimes([release], install)
    runtimes = tuple({runtime.name: runtime for runtime in (*writers, *readers)}.values())
    hosts.know(runtimes)
    plan = make_plan(Ledger(), axes=Axes(runtimes, checks=(parts["check"],)), producers={parts["producer"]}, only=[parts["case"]])
    names = ("case", "producer", "producer_version", "consumer", "check")
    cells = [
        cell for cell in plan if cell.runtime == readers[0].name and all(getattr(cell, name) == parts[name] for name in names)
    ]
    if not cells:
        raise Refused(f"no cell of {release} asks that: see `savedmodel-compat matrix plan`", ExitCode.USAGE)
    made = [cell for cell in plan if cell.is_production and cell.artifact_id == cells[0].artifact_id]
    wanted = [cell for cell in made if not is_complete(cell.artifact_dir(out))] + cells
    results = list(run_plan(hosts, out, Plan(tuple(wanted))))
    if results[-1].outcome is Outcome.NOT_APPLICABLE:
        raise Refused(f"{release} cannot be asked: {results[-1].message}", ExitCode.USAGE)
    return results[-1]
