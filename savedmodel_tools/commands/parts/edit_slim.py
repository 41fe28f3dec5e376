"""``savedmodel-compat edit slim``: a copy without what serving does not need."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Callable

import click

from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_tools.commands.parts.editing import edit_claims, edit_options, tags_option

if TYPE_CHECKING:
    from savedmodel_tools.edits.draft import Draft


@edit_claims
@click.command()
@edit_options
@list_option("--keep", type=Choice(["optimizer", "training"]), help="Keep this; several by commas.")
@click.option(
    "--serving-only",
    is_flag=True,
    help="Drop functions that only Python can call, too. Signatures stay.",
)
@tags_option
def slim(keep: tuple[str, ...], serving_only: bool, tags: str | None) -> Callable[[Draft], None]:
    """Copy MODEL without optimizers, functions for training, and unreachable nodes and objects.

    Signatures, tables, assets and the weights of the model itself stay as they are.

    \b
    Examples:
      savedmodel-compat edit slim model --out small
      savedmodel-compat edit slim models --out small --jobs 4
      savedmodel-compat edit slim model --dry-run
    """
    from savedmodel_tools.edits.slim import slim as edit

    return partial(edit, keep=keep, serving_only=serving_only, tags=tags)
