"""``savedmodel-compat edit tags``: other tags for a MetaGraph."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Callable

import click

from savedmodel_tools.commands.parts.editing import edit_claims, edit_options, tags_option

if TYPE_CHECKING:
    from savedmodel_tools.edits.draft import Draft


@edit_claims
@click.command()
@edit_options
@click.argument("new", metavar="TAGS")
@tags_option
def tags(new: str, tags: str | None) -> Callable[[Draft], None]:
    """Give a MetaGraph of MODEL the tags TAGS, separated by commas ("" for none).

    Loaders choose a MetaGraph by its tags. `inspect` shows them.

    \b
    Examples:
      savedmodel-compat edit tags model serve,gpu --tags serve --out copy
    """
    from savedmodel_tools.edits.signatures import set_tags

    return partial(set_tags, new=new, tags=tags)
