"""What each TensorFlow writes, read by each TensorFlow.

Task: Compare TensorFlows
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compat_matrix.cells.outcomes import ExitCode
from compat_matrix.cells.plan import NO_CONSUMER
from compat_matrix.commands.parts.planned import asked_runtimes, exit_codes, jobs_option
from compat_matrix.commands.parts.plugin_options import Chosen, plugin_option
from compat_matrix.commands.parts.refusing import EXISTING_FILE, Refused
from compat_matrix.commands.parts.renamed import renaming
from compat_matrix.common import toml
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.verdict import DEFAULT_PATH, Ledger

if TYPE_CHECKING:
    from compat_matrix.plan.changed import Changes

GRID_FILE = Path(__file__).parent.parent / "grid.toml"
NAMES = re.compile(r"[\s,]+")


@click.command(cls=renaming(runtimes="--runtime", cases="--case"))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The output folder.")
@click.option(
    "--runtime",
    "runtimes",
    multiple=True,
    metavar="NAME",
    help="Runtimes, also by comma, or `all` (default: those of grid.toml).",
)
@click.option(
    "--case", "cases", multiple=True, metavar="NAME", help="Cases, also by comma, * is allowed (default: those of grid.toml)."
)
@click.option("--producer", multiple=True, metavar="NAME", help="Only what this producer writes; NAME=FOLDER.")
@click.option("--consumer", multiple=True, metavar="NAME", help="Only this consumer; NAME=COMMAND.")
@click.option("--changed-since", metavar="REVISION", help="Only cases and runtimes that changed since this git revision.")
@jobs_option
@click.option("--resume", is_flag=True, help="Keep the results of an interrupted run of the same plan, run what is missing.")
@click.option("--require", is_flag=True, help="A cell that is not run fails the run, whatever the reason.")
@click.option("--no-install", is_flag=True, help="Do not make the environments that are missing.")
@click.option("--expectations", type=EXISTING_FILE, default=DEFAULT_PATH, help="The ledger of known failures (default: ours).")
@plugin_option
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
@exit_codes
def grid(
    out: Path,
    runtimes: tuple[str, ...],
    cases: tuple[str, ...],
    changed_since: str | None,
    processes: int | None,
    resume: bool,
    require: bool,
    no_install: bool,
    expectations: Path,
    plugins: Path | None,
    pytest_args: tuple[str, ...],
    **selectors: tuple[str, ...],
) -> int:
    """Fill the version grid: every runtime writes every case, every runtime reads what each of them wrote.

    A plug-in with a version of its own is one more writer or reader: the runtimes read what it writes, it reads what they write.

    Writes what `matrix run` writes; the report shows a table for each pair of writer and reader, and exits likewise.
    """
    from compat_matrix.engine import running
    from compat_matrix.plan.changed import affected
    from compat_matrix.plan.planning import Axes, make_plan, plugin_artifacts

    defaults = toml.parse(GRID_FILE.read_text(encoding="utf-8"))
    names, patterns = _split(runtimes) or defaults["runtimes"], _split(cases) or defaults["cases"]
    changes = _changes(changed_since) if changed_since else None
    if changes:  # also a case that is not among the usual ones
        patterns = sorted({*patterns, *changes.cases} if changes.locks else changes.cases)
    given = Chosen.of(selectors, plugins)
    producers, consumers = given.selectors["producer"], given.selectors["consumer"]
    asked = asked_runtimes(names, install=not no_install)
    if not cases:  # the usual ones are ours; whoever brings plug-ins along wants theirs too
        patterns = [*patterns, *sorted({one.case for by in given.registry.theirs[1] for one in plugin_artifacts(by, asked)})]
    text = ledger_text(expectations, given.registry)
    every = set(given.registry.producers)
    plan = make_plan(Ledger.parse(text), axes=Axes(asked), producers=every, only=patterns, registry=given.registry)
    chosen = running.select(plan, {"producer": producers, "consumer": [*consumers, NO_CONSUMER] if consumers else ()}, ())
    if changes:
        chosen &= affected(plan, changes, asked)
        if not chosen:
            raise Refused(f"nothing that a selected cell depends on changed since {changed_since}", ExitCode.USAGE)
    since = [changed_since] if changes and changed_since else []
    asked_of: dict[str, Sequence[str]] = {"grid": names, "case": patterns, "producer": producers, "consumer": consumers}
    order = running.Order(
        plan,
        chosen,
        text,
        asked,
        given.words,
        running.selection_of({**asked_of, "changed_since": since}),
        processes,
        resume,
        require,
        pytest_args,
        given.registry,
    )
    return int(running.carry_out(out.resolve(), order)["exit_code"])


def _split(values: Sequence[str]) -> list[str]:
    return [name for value in values for name in NAMES.split(value) if name]


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
