"""List or set the tags of MetaGraphs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Callable

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.groups import Group
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted
from savedmodel_tools.commands.parts.editing import edit_options, tags_option

if TYPE_CHECKING:
    from savedmodel_tools.edits.draft import Draft


@click.group(cls=Group)
def tags() -> None:
    """List the tags by which loaders choose a MetaGraph, or write a copy with others."""


@claims(
    green="the tags of every model are listed",
    asked="the files",
    not_asked="whether a MetaGraph loads (`check`)",
    codes={ExitCode.UNEXPECTED: "a model cannot be read, or a folder was not looked into"},
)
@tags.command("list")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/zoo/editing.md).")
@click.option(
    "--follow-links", is_flag=True, help="Accept symbolic links that lead out of a directory."
)
def list_(model: str, as_json: bool, follow_links: bool) -> int:
    """List the tags of each MetaGraph of the MODEL, or of every model in the tree MODEL.

    \b
    Examples:
      savedmodel-compat tags list model
    """
    from savedmodel_tools.commands.parts.editing import run
    from savedmodel_tools.edits.listing import tags_of

    return run(model, as_json, follow_links, tags_of, _lines)


def _lines(graph: dict[str, Any]) -> list[str]:
    from reference_impl.format.container.layout import tags_text

    kind = "object graph" if graph["object_graph"] else "graph only"
    return [f"{tags_text(graph['tags'])}  {kind}, {counted(graph['signatures'], 'signature')}"]


@claims(
    green=(
        "the copy is written, and each signature that stays is proved to compute the same; with"
        " --dry-run: it would be"
    ),
    asked="the graphs of both, node by node, without running them",
    not_asked="answers (`check` asks the copy)",
    codes={ExitCode.UNEXPECTED: "a model is refused or cannot be read: nothing is written for it"},
)
@tags.command("set")
@edit_options
@click.argument("new")
@tags_option
def set_(new: str, tags: str | None) -> Callable[[Draft], None]:
    """Give a MetaGraph of MODEL the tags NEW, separated by commas ("" for none).

    \b
    Examples:
      savedmodel-compat tags set model serve,gpu --tags serve --out copy
    """
    from savedmodel_tools.edits.signatures import set_tags

    return partial(set_tags, new=new, tags=tags)
