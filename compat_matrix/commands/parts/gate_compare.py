"""``savedmodel-compat gate compare``: compare results that exist."""

from __future__ import annotations

from pathlib import Path

import click

from compat_matrix.commands.parts import planned
from compat_matrix.commands.parts.gate_verdict import (
    CODES,
    GREEN,
    Wanted,
    refuse_twice,
    tell,
    verdict_options,
)
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import quiet_option


@claims(
    green=GREEN,
    asked="nothing is run: the results of the two runs, or of the two versions in one run",
    not_asked="cells that only one of the two runs asked, which the report lists",
    codes=CODES,
)
@click.command()
@click.argument("baseline", metavar="OLD")
@click.argument("candidate", metavar="NEW")
@click.option(
    "--run",
    "of",
    type=planned.RUN_FOLDER,
    help="OLD and NEW are TensorFlow versions in this run (`matrix run --grid`, `gate run`).",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write gate.html, gate.md, gate.json and junit.xml to this folder.",
)
@verdict_options
@quiet_option
@planned.exit_codes
def compare(
    baseline: str,
    candidate: str,
    of: Path | None,
    out: Path | None,
    same: bool,
    fail_on_drift: bool,
    accept_known: bool,
    full: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Compare two finished runs, or two TensorFlow versions inside one run. Nothing is run.

    OLD and NEW are output folders of `matrix run` or `gate run`. With --run they are versions.

    \b
    Examples:
      savedmodel-compat gate compare runs/old runs/new --full
      savedmodel-compat gate compare 2.15.1 2.21.0 --run grid-out --out gate-out
    """
    from compat_matrix.gate import run as gating
    from compat_matrix.gate import twice

    wanted = Wanted(fail_on_drift, accept_known, full, as_json, quiet)
    target = out.resolve() if out else None
    if of is not None:
        try:
            pairs, sides = gating.versions_of(of, baseline, candidate)
        except gating.UnknownVersion as error:
            raise click.UsageError(str(error)) from error
        if sides[0]["label"] == sides[1]["label"]:
            refuse_twice((baseline, candidate), same)
        return tell(target, pairs, sides, wanted)
    folders = [planned.RUN_FOLDER.convert(spec, None, None) for spec in (baseline, candidate)]
    if twice.one_run(*folders):
        refuse_twice((baseline, candidate), same)
    return tell(target, *gating.folders(*folders), wanted)
