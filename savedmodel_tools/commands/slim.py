"""Copy a model without what serving does not need."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Callable

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_tools.commands.parts.editing import edit_options, tags_option

if TYPE_CHECKING:
    from savedmodel_tools.edits.draft import Draft


@claims(
    green=(
        "the copy is written, and each signature that stays is proved to compute the same; with"
        " --dry-run: it would be"
    ),
    asked="the graphs of both, node by node, without running them",
    not_asked="answers (`check` asks the copy)",
    codes={ExitCode.UNEXPECTED: "a model is refused or cannot be read: nothing is written for it"},
)
@click.command()
@edit_options
@list_option("--keep", type=Choice(["optimizer", "training"]), help="Keep this; several by commas.")
@click.option(
    "--serving-only",
    is_flag=True,
    help="Drop functions that only Python can call, too; signatures stay.",
)
@tags_option
def slim(keep: tuple[str, ...], serving_only: bool, tags: str | None) -> Callable[[Draft], None]:
    """Copy MODEL without optimizers and their slots, functions for training, and all that nobody
    can reach.

    Signatures, tables, assets and weights of the model itself stay as they are; each signature is
    proved to compute the same.

    \b
    Examples:
      savedmodel-compat slim model --out small
      savedmodel-compat slim models --out small --jobs 4
      savedmodel-compat slim model --dry-run
    """
    from savedmodel_tools.edits.slim import slim as edit

    return partial(edit, keep=keep, serving_only=serving_only, tags=tags)
