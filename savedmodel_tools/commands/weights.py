"""List the weights of a SavedModel, or write them to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import follow_links_option, json_option
from savedmodel_common.command_line.completion import folders
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, printable, told
from savedmodel_tools.commands.parts.models import models_named

if TYPE_CHECKING:
    from savedmodel_tools.weights import Weight, Weights

_DIGITS = 12  # of a digest, in the list


@claims(
    green=(
        "every weight that was chosen was read, its checksum is right, and with --out it is in the"
        " file"
    ),
    asked="the checkpoint: each chosen tensor with its checksums, and that its parts cover it",
    not_asked=(
        "whether a loader would restore them; the rest of the model; with --only, the other weights"
    ),
    codes={
        ExitCode.UNEXPECTED: (
            "the checkpoint is damaged or cannot be read, or the format of --out cannot carry a"
            " weight"
        )
    },
)
@click.command()
@click.argument("model", shell_complete=folders)
@click.option(
    "--tags",
    help="Tags of the MetaGraph whose variables are named, separated by commas. Default: all.",
)
@list_option(
    "--only",
    metavar="PATTERN",
    help="Only weights whose path, name or key matches (dense*); several by commas.",
)
@click.option(
    "--by",
    type=Choice(["path", "name", "key"]),
    default="path",
    show_default=True,
    help=(
        "How weights are called: by the path of their object, the name of their variable, their key"
        " in the checkpoint."
    ),
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the weights to FILE.npz or FILE.safetensors.",
)
@json_option("a JSON array with an object for each weight")
@follow_links_option
def weights(
    model: str,
    tags: str | None,
    only: tuple[str, ...],
    by: str,
    out: Path | None,
    as_json: bool,
    follow_links: bool,
) -> int:
    """List the weights of MODEL, or write them to a file with --out.

    The list has name, dtype, shape, bytes and SHA-256 of each tensor of the checkpoint. The command
    does not need TensorFlow and does not run the model. It verifies every checksum and joins
    partitioned variables. Tensors that belong to no variable, such as the rows of a table, have
    only a key. If the file format cannot hold a tensor (a string; bfloat16 in .npz), the command
    names it and writes nothing. Leave the tensor out with --only.

    \b
    Examples:
      savedmodel-compat weights model
      savedmodel-compat weights model --only 'dense*' --out dense.npz
      savedmodel-compat weights model --by name --out weights.safetensors
    """
    from reference_impl.errors import SavedModelError
    from reference_impl.format.container import layout
    from savedmodel_tools import weights as task

    if out is not None and out.suffix not in task.SUFFIXES:
        raise click.BadParameter(
            f"{out} ends in none of {', '.join(task.SUFFIXES)}", param_hint="--out"
        )
    named = models_named([model], follow_links).models
    if len(named) > 1:
        reason = f"{model} holds {len(named)} models: name one of them"
        raise click.UsageError(printable(reason, newlines=False))
    place = named[0].name if named else model
    try:
        with task.Weights(layout.read(place, follow_links=follow_links), _tags(tags)) as opened:
            keys = opened.keys(only)
            if only and not keys:
                raise click.UsageError(
                    printable(f"no weight matches {' or '.join(only)}", newlines=False)
                )
            found = _asked(opened, keys, by, out)
    except task.Unwritable as error:
        click.echo(printable(str(error)), err=True)
        click.echo(
            f"{out} is not written. --only leaves weights out, and another --by gives other names.",
            err=True,
        )
        return ExitCode.UNEXPECTED
    except SavedModelError as error:
        click.echo(printable(told(error)), err=True)
        return ExitCode.UNEXPECTED
    _show(found, by, as_json)
    if out is not None:
        click.echo(f"{counted(len(found), 'weight')} -> {out}", err=True)
    return ExitCode.AS_EXPECTED


def _tags(text: str | None) -> list[str] | None:
    return None if text is None else [tag.strip() for tag in text.split(",") if tag.strip()]


def _asked(opened: Weights, keys: list[str], by: str, out: Path | None) -> list[Weight]:
    from savedmodel_tools.weights import write

    return [opened.weight(key) for key in keys] if out is None else write(opened, keys, by, out)


def _show(found: list[Weight], by: str, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([weight.to_json() for weight in found], indent=1))
        return
    rows = [(by, "dtype", "shape", "bytes", "sha256")]
    for weight in found:
        shape = "x".join(map(str, weight.shape)) or "scalar"
        size = "?" if weight.size is None else f"{weight.size:,}"
        rows.append(
            (
                printable(weight.called(by), newlines=False),
                weight.dtype,
                shape,
                size,
                weight.digest[:_DIGITS],
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows)]
    for name, dtype, shape, size, digest in rows:
        line = (
            f"{name:<{widths[0]}}  {dtype:<{widths[1]}}  {shape:<{widths[2]}}  {size:>{widths[3]}} "
            f" {digest}"
        )
        click.echo(line.rstrip())
    total = sum(weight.size or 0 for weight in found)
    click.echo(f"{counted(len(found), 'weight')}, {total:,} bytes")
