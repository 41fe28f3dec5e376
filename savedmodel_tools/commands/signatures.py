"""List, rename, drop, copy signatures, or choose the default."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Callable

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.groups import Group
from savedmodel_common.exit_codes import ExitCode
from savedmodel_tools.commands.parts.editing import edit_options, tags_option

if TYPE_CHECKING:
    from savedmodel_tools.edits.draft import Draft


@click.group(cls=Group)
def signatures() -> None:
    """List the signatures of SavedModels, or write copies in which they are called otherwise.

    SignatureDefs and, in models of TF 2, the object graph and that of the checkpoint are kept in
    step.
    """


@claims(
    green="the signatures of every model are listed",
    asked="the files",
    not_asked="whether a signature can be called (`check`)",
    codes={ExitCode.UNEXPECTED: "a model cannot be read, or a folder was not looked into"},
)
@signatures.command("list")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/zoo/editing.md).")
@click.option(
    "--follow-links", is_flag=True, help="Accept symbolic links that lead out of a directory."
)
def list_(model: str, as_json: bool, follow_links: bool) -> int:
    """List the signatures of the MODEL, or of every model in the tree MODEL.

    \b
    Examples:
      savedmodel-compat signatures list model
    """
    from savedmodel_tools.commands.parts.editing import run
    from savedmodel_tools.edits.listing import signatures_of

    return run(model, as_json, follow_links, signatures_of, _lines)


def _lines(graph: dict[str, Any]) -> list[str]:
    from reference_impl.format.container.layout import tags_text

    lines = [f"MetaGraph {tags_text(graph['tags'])}"]
    for item in graph["signatures"]:
        lines.append(
            f"  {item['key']}  {item['method_name']}"
            + ("" if item["loads"] else "  (not in the object graph)")
        )
        for word, arguments in (("in ", item["inputs"]), ("out", item["outputs"])):
            lines += [f"    {word} {one['name']}: {one['type']}" for one in arguments]
    return lines if graph["signatures"] else [*lines, "  no signatures"]


@claims(
    green=(
        "the copy is written, and each signature that stays is proved to compute the same; with"
        " --dry-run: it would be"
    ),
    asked="the graphs of both, node by node, without running them",
    not_asked="answers (`check` asks the copy)",
    codes={ExitCode.UNEXPECTED: "a model is refused or cannot be read: nothing is written for it"},
)
@signatures.command()
@edit_options
@click.argument("old")
@click.argument("new", required=False)
@click.option(
    "--input",
    "inputs",
    metavar="OLD=NEW",
    multiple=True,
    help="Another name for an input; may be repeated.",
)
@click.option(
    "--output",
    "outputs",
    metavar="OLD=NEW",
    multiple=True,
    help="Another name for an output; may be repeated.",
)
@tags_option
def rename(
    old: str, new: str | None, inputs: tuple[str, ...], outputs: tuple[str, ...], tags: str | None
) -> Callable[[Draft], None]:
    """Give the signature OLD of MODEL the key NEW, and its inputs and outputs other names.

    All names change at once: `--input a=b --input b=a` lets two inputs change places.

    \b
    Examples:
      savedmodel-compat signatures rename model old new --out copy
      savedmodel-compat signatures rename model predict --input x=images --output y=scores --out copy
    """  # noqa: E501
    from savedmodel_tools.edits.arguments import rename_signature

    pairs = _pairs("--input", inputs), _pairs("--output", outputs)
    if new is None and not any(pairs):
        raise click.UsageError(
            "say what is to be called otherwise: the signature (NEW), --input or --output"
        )
    return partial(rename_signature, old=old, new=new, inputs=pairs[0], outputs=pairs[1], tags=tags)


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """``OLD=NEW``, where the old name may have an equals sign of its own."""
    found: dict[str, str] = {}
    for text in texts:
        old, sign, new = text.rpartition("=")
        if not sign or not old or not new:
            raise click.BadParameter(f"{text!r} is not OLD=NEW", param_hint=option)
        if old in found:
            raise click.BadParameter(f"{old!r} is given two new names", param_hint=option)
        found[old] = new
    return found


@claims(
    green=(
        "the copy is written, and each signature that stays is proved to compute the same; with"
        " --dry-run: it would be"
    ),
    asked="the graphs of both, node by node, without running them",
    not_asked="answers (`check` asks the copy)",
    codes={ExitCode.UNEXPECTED: "a model is refused or cannot be read: nothing is written for it"},
)
@signatures.command()
@edit_options
@click.argument("old")
@click.argument("new")
@tags_option
def copy(old: str, new: str, tags: str | None) -> Callable[[Draft], None]:
    """Give the signature OLD of MODEL another key, NEW, beside its own.

    \b
    Examples:
      savedmodel-compat signatures copy model serving_default predict --out copy
    """
    from savedmodel_tools.edits import signatures as edits

    return partial(edits.copy, old=old, new=new, tags=tags)


@claims(
    green=(
        "the copy is written, and each signature that stays is proved to compute the same; with"
        " --dry-run: it would be"
    ),
    asked="the graphs of both, node by node, without running them",
    not_asked="answers (`check` asks the copy)",
    codes={ExitCode.UNEXPECTED: "a model is refused or cannot be read: nothing is written for it"},
)
@signatures.command()
@edit_options
@click.argument("keys", nargs=-1, required=True)
@tags_option
def drop(keys: tuple[str, ...], tags: str | None) -> Callable[[Draft], None]:
    """Take the signatures KEYS of MODEL away. `slim` removes what only they needed.

    \b
    Examples:
      savedmodel-compat signatures drop model debug train --out copy
    """
    from savedmodel_tools.edits import signatures as edits

    return partial(edits.drop, keys=keys, tags=tags)


@claims(
    green=(
        "the copy is written, and each signature that stays is proved to compute the same; with"
        " --dry-run: it would be"
    ),
    asked="the graphs of both, node by node, without running them",
    not_asked="answers (`check` asks the copy)",
    codes={ExitCode.UNEXPECTED: "a model is refused or cannot be read: nothing is written for it"},
)
@signatures.command()
@edit_options
@click.argument("key")
@click.option("--old", help="New key of the signature that is the default now.")
@tags_option
def default(key: str, old: str | None, tags: str | None) -> Callable[[Draft], None]:
    """Make the signature KEY of MODEL the one that clients get who name none (serving_default).

    \b
    Examples:
      savedmodel-compat signatures default model predict --out copy
    """
    from savedmodel_tools.edits import signatures as edits

    return partial(edits.make_default, key=key, old=old, tags=tags)
