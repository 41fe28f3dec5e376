"""``savedmodel-compat edit signatures``: rename, copy and drop signatures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Callable

import click

from savedmodel_tools.commands.parts.editing import edit_claims, edit_options, tags_option

if TYPE_CHECKING:
    from savedmodel_tools.edits.draft import Draft


def _repeated(name: str, metavar: str, text: str) -> Callable[..., Callable[..., int]]:
    """Return an option that takes one value each time that it is given: a key may have commas."""
    return click.option(name, metavar=metavar, multiple=True, help=text)


@edit_claims
@click.command()
@edit_options
@_repeated("--rename", "OLD=NEW", "Give a signature another key. May be repeated.")
@_repeated("--copy", "OLD=NEW", "Give a signature a second key. May be repeated.")
@_repeated("--drop", "KEY", "Remove a signature. May be repeated.")
@click.option(
    "--default",
    metavar="KEY",
    help="Let serving_default, which clients get if they name no signature, be this one.",
)
@_repeated("--input", "KEY:OLD=NEW", "Rename an input of the signature KEY. May be repeated.")
@_repeated("--output", "KEY:OLD=NEW", "Rename an output of the signature KEY. May be repeated.")
@tags_option
def signatures(
    rename: tuple[str, ...],
    copy: tuple[str, ...],
    drop: tuple[str, ...],
    default: str | None,
    input: tuple[str, ...],  # the names of the options
    output: tuple[str, ...],
    tags: str | None,
) -> Callable[[Draft], None]:
    """Rename, copy or drop signatures of MODEL, and rename their inputs and outputs.

    All new names of inputs and outputs apply at once: --input f:a=b --input f:b=a swaps two. If
    you give several options, the order is: inputs and outputs, --drop, --rename, --copy, --default.

    SignatureDefs, the object graph and the checkpoint keep the same names. `edit slim` removes
    what only dropped signatures needed. `inspect --only signatures` lists the signatures.

    \b
    Examples:
      savedmodel-compat edit signatures model --rename predict=serving_default --out copy
      savedmodel-compat edit signatures model --input predict:x=images --output predict:y=scores --out copy
      savedmodel-compat edit signatures model --drop debug --drop train --out copy
      savedmodel-compat edit signatures model --rename serving_default=old --default predict --out copy
    """  # noqa: E501
    from savedmodel_tools.edits.signature_changes import SignatureChanges

    changes = SignatureChanges(
        inputs=_argument_pairs("--input", input),
        outputs=_argument_pairs("--output", output),
        drop=drop,
        rename=_pairs("--rename", rename),
        copy=_pairs("--copy", copy),
        default=default,
    )
    if changes == SignatureChanges():
        raise click.UsageError(
            "say what to change: --rename, --copy, --drop, --default, --input or --output"
        )
    return partial(SignatureChanges.apply, changes, tags=tags)


def _pairs(option: str, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the names of ``OLD=NEW``; the old name may have an equals sign of its own."""
    found: dict[str, str] = {}
    for text in texts:
        old, sign, new = text.rpartition("=")
        if not sign or not old or not new:
            raise click.BadParameter(f"{text!r} is not OLD=NEW", param_hint=option)
        if old in found:
            raise click.BadParameter(f"{old!r} is given two new names", param_hint=option)
        found[old] = new
    return tuple(found.items())


def _argument_pairs(option: str, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return ``KEY:OLD`` and ``NEW`` of each text. The keys are those of the model, which may
    contain a colon.
    """
    for text in texts:
        if ":" not in text.rpartition("=")[0].strip(":"):
            raise click.BadParameter(f"{text!r} is not KEY:OLD=NEW", param_hint=option)
    return _pairs(option, texts)
