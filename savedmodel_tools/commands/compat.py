"""Which TensorFlow releases load which part of a model, and why not."""

from __future__ import annotations

import json

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable
from savedmodel_tools.commands.parts.models import (
    jobs_of_models,
    model_options,
    models_named,
    tell_skipped,
)

LOADERS = ("session", "c++", "objects")
LOADER_HELP = (
    "session (tf.compat.v1 in Python), c++ (Serving, Go, Java), objects (tf.saved_model.load)"
)


@claims(
    green="every part loads: in each release of --target; without, in one release at least",
    asked=lambda: _claimed(),
    not_asked=(
        "whether the answers are the same (`gate`, `check`); GPU kernels; what ops do to a machine"
        " (`verify`)"
    ),
    codes={
        ExitCode.UNEXPECTED: "a part does not load, or loses something, or the model cannot be read"
    },
)
@click.command()
@model_options
@click.option(
    "--target",
    metavar="VERSIONS",
    help='Releases to ask about: "tensorflow>=1.15,<2.22", 2.4; default: all that are known.',
)
@list_option("--for", "loaders", type=Choice(LOADERS), help=f"Only {LOADER_HELP}; default: all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/zoo/compat.md).")
@click.option(
    "--full", is_flag=True, help="Show all parts, and all that the nearest other releases lack."
)
@click.option(
    "--summary",
    is_flag=False,
    flag_value="table",
    type=Choice(["table", "csv"]),
    help="One line for each model: the releases in which all its parts load; as a table or as CSV.",
)
@jobs_of_models
def compat(
    models: tuple[str, ...],
    lists: tuple[str, ...],
    follow_links: bool,
    target: str | None,
    loaders: tuple[str, ...],
    as_json: bool,
    full: bool,
    summary: str | None,
    jobs: int,
) -> int:
    """Show which TensorFlow releases load the SavedModels at MODELS..., part by part, and what
    keeps the others from it.

    Exit code 1: with --target, when a part does not load, or loses something, in one of these
    releases; without, when a part loads in no release at all; and for a model that cannot be read.

    \b
    Examples:
      savedmodel-compat compat model
      savedmodel-compat compat models --summary csv
      savedmodel-compat compat model --target 'tensorflow>=2.12,<2.16'
    """
    found = models_named(models, lists, follow_links)
    from functools import partial

    from savedmodel_tools import targets
    from savedmodel_tools.compat_models import answer
    from savedmodel_tools.compat_told import Told
    from savedmodel_tools.jobs import ordered
    from savedmodel_tools.skew.history import history

    if summary and (as_json or full):
        raise click.UsageError("--summary is a form of its own: without --json and --full")
    table = history()
    try:
        asked = targets.releases(target, table) if target else tuple(range(len(table.releases)))
    except targets.NoTarget as error:
        raise click.UsageError(printable(str(error))) from error
    chosen = loaders or LOADERS
    told = Told(table, asked, chosen, all_asked=bool(target))
    advise = not as_json and not summary
    ask = partial(answer, asked=asked, follow_links=follow_links, advise=advise)
    for model, said in zip(found.models, ordered(ask, found.models, jobs)):
        lines = told.add(model, said, full)
        if advise:
            for line in lines:
                click.echo(line)
    skipped = [item._asdict() for item in found.skipped]
    if as_json:
        names = told.releases
        objects = {"schema": 1, "releases": names, "models": told.objects, "skipped": skipped}
        click.echo(json.dumps(objects))
    else:
        for line in told.summary(summary):
            click.echo(line)
        tell_skipped(found.skipped)
    return ExitCode.UNEXPECTED if skipped or not told.well else ExitCode.AS_EXPECTED


def _claimed() -> str:
    from savedmodel_tools.skew.history import history

    names = [release.name for release in history().releases]
    return (
        f"the op history of {names[0]} to {names[-1]}, for the loaders {', '.join(LOADERS)};"
        " nothing is run"
    )
