"""Compare two SavedModels, or two folders of them."""

from __future__ import annotations

import itertools
import math
import os
from typing import TYPE_CHECKING, Optional

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import follow_links_option, jobs_option, json_option
from savedmodel_common.command_line.completion import folders
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable
from savedmodel_tools.commands.parts.models import models_named
from savedmodel_tools.comparison.model import SECTIONS

if TYPE_CHECKING:
    from savedmodel_tools.comparison.model import Options
    from savedmodel_tools.find import Found


def _tolerance(
    _: click.Context, __: click.Parameter, value: Optional[str]
) -> tuple[Optional[float], Optional[float]]:
    """``RTOL`` or ``RTOL,ATOL``."""
    if value is None:
        return None, None
    try:
        numbers = [float(part) for part in value.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not all(
        math.isfinite(number) and number >= 0 for number in numbers
    ):
        raise click.BadParameter(f"{value!r} is neither RTOL nor RTOL,ATOL")
    return numbers[0], numbers[1] if len(numbers) == 2 else 0.0


@claims(
    green=(
        "the two are equal in every section that was compared, within --tolerance and --ulps if"
        " given"
    ),
    asked=lambda: (
        f"the sections {', '.join(SECTIONS)}, without what TensorFlow generates: names, numbering,"
        " order of nodes, shards"
    ),
    not_asked=(
        "what --only and --ignore leave out, which the verdict names; answers (`contract check"
        " --answers`, `check`)"
    ),
    codes={ExitCode.UNEXPECTED: "they are different"},
)
@click.command()
@click.argument("first", metavar="A", shell_complete=folders)
@click.argument("second", metavar="B", shell_complete=folders)
@list_option("--only", type=Choice(SECTIONS), help="Only this section; several by commas.")
@list_option("--ignore", type=Choice(SECTIONS), help="Not this section; several by commas.")
@click.option(
    "--tolerance",
    callback=_tolerance,
    metavar="RTOL[,ATOL]",
    help="Floating weights count as equal up to ATOL + RTOL * the larger of the two.",
)
@click.option(
    "--ulps",
    type=click.IntRange(0),
    help="Floating weights count as equal up to this many units in the last place.",
)
@click.option(
    "--clients",
    is_flag=True,
    help="Compare only what a client of the signatures notices, as `contract check` does.",
)
@click.option(
    "--hash",
    "hashes",
    is_flag=True,
    help="Compute the content hashes even if a difference was found without them.",
)
@json_option(page="docs/zoo/diff.md")
@click.option("--full", is_flag=True, help="Abbreviate nothing.")
@follow_links_option
@jobs_option
def diff(
    first: str,
    second: str,
    only: tuple[str, ...],
    ignore: tuple[str, ...],
    tolerance: tuple[Optional[float], Optional[float]],
    ulps: Optional[int],
    clients: bool,
    hashes: bool,
    as_json: bool,
    full: bool,
    follow_links: bool,
    jobs: int,
) -> int:
    """Compare the SavedModels A and B, or two folders of SavedModels.

    Generated names, numbering, the order of nodes, shards and the writer do not count. The exit
    code is 0 if both are equal in the sections that are compared, else 1.

    --clients compares only what a client of the signatures notices, for example after a migration:
    the exit code is 0 unless a client of A would break.

    \b
    Examples:
      savedmodel-compat diff export/1 export/2
      savedmodel-compat diff old_models new_models --jobs 4
      savedmodel-compat diff model migrated/models/model --clients
      savedmodel-compat diff export/1 export/2 --only variables --tolerance 1e-5
    """
    from savedmodel_tools.comparison.model import Options

    # NumPy starts a thread per core for linear algebra, which is not done here, and takes longer
    # over it than a small model.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if clients and (
        only or ignore or ulps is not None or tolerance[0] is not None or hashes or full
    ):
        raise click.UsageError(
            "--clients compares signatures alone: no --only, --ignore, --tolerance, --ulps, --hash,"
            " --full"
        )
    sections = tuple(name for name in SECTIONS if name in (only or SECTIONS) and name not in ignore)
    if not sections:
        raise click.UsageError("nothing is left to compare")
    options = Options(sections, tolerance[0], tolerance[1], ulps, follow_links, hashes)
    found = [models_named([name], follow_links=follow_links) for name in (first, second)]
    single = [_is_model(name, item) for name, item in zip((first, second), found)]
    if single[0] != single[1]:
        model, folder = (first, second) if single[0] else (second, first)
        raise click.UsageError(
            printable(
                f"{model} is a model, {folder} a folder of models: give two of one kind",
                newlines=False,
            )
        )
    if clients:
        from savedmodel_tools.commands.parts.diff_clients import tell

        return tell(found, single[0], as_json, follow_links)
    return (
        _one(found, options, as_json, full)
        if single[0]
        else _many(found, options, as_json, full, jobs)
    )


def _is_model(name: str, found: Found) -> bool:
    from savedmodel_tools.find import place_of

    # By what is meant: of a file:// URL the model's name is the path.
    return (
        len(found.models) == 1
        and not found.skipped
        and found.models[0].place.identity() == place_of(name).identity()
    )


def _one(found: list[Found], options: Options, as_json: bool, full: bool) -> int:
    from savedmodel_tools.comparison import diff as compare

    with found[0].models[0].local() as one, found[1].models[0].local() as other:
        result = compare(one, other, options)
    called = [
        side._replace(path=item.models[0].name)
        for side, item in zip((result.first, result.second), found)
    ]
    result = result._replace(first=called[0], second=called[1])
    if as_json:
        import json

        click.echo(json.dumps(result.to_json(), separators=(",", ":")))
    else:
        from savedmodel_tools.comparison.text import lines

        click.echo("\n".join(lines(result, full)))
    return ExitCode.UNEXPECTED if result.verdict == "different" else ExitCode.AS_EXPECTED


def _many(found: list[Found], options: Options, as_json: bool, full: bool, jobs: int) -> int:
    from savedmodel_tools.comparison.text import lines
    from savedmodel_tools.diff.trees import (
        CLOSE,
        EQUAL,
        UNREAD,
        Pair,
        pair_line,
        pairs,
        summary,
    )

    seen: list[Pair] = []
    for pair in pairs(found[0].models, found[1].models, options, jobs):
        seen.append(pair)
        if not as_json:
            click.echo(pair_line(pair))
            if full and pair.result is not None and pair.status != EQUAL:
                click.echo("\n".join(f"    {line}" for line in lines(pair.result, full)))
    skipped = list(itertools.chain.from_iterable(side.skipped for side in found))
    if as_json:
        import json

        told = [{"name": item.name, "reason": item.reason} for item in skipped]
        click.echo(
            json.dumps(
                {"schema": 1, "models": [pair.to_json() for pair in seen], "skipped": told},
                separators=(",", ":"),
            )
        )
    else:
        for item in skipped:
            click.echo(f"! {printable(f'{item.name}: {item.reason}', newlines=False)}")
        click.echo(summary(seen))
    if any(pair.status == UNREAD for pair in seen):
        return ExitCode.HARNESS_ERROR
    return (
        ExitCode.AS_EXPECTED
        if not skipped and all(pair.status in (EQUAL, CLOSE) for pair in seen)
        else ExitCode.UNEXPECTED
    )
