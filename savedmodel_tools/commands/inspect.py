"""Show what a SavedModel contains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.fast.deferred_modules import defer_pure_messages
from savedmodel_common.printable import printable, told
from savedmodel_tools.commands.parts.models import (
    answers,
    model_options,
    models_named,
    tell_skipped,
)

if TYPE_CHECKING:
    from savedmodel_tools.find import Found

SECTIONS = (
    *(
        "signatures",
        "objects",
        "functions",
        "variables",
        "assets",
        "init",
        "effects",
        "programs",
        "collections",
        "sizes",
    ),
    "ops",
)


@claims(
    green="nothing that was read is damaged or missing",
    asked="all parts of the files, without running anything; with `--trace`, a load",
    not_asked="the rules of `verify`; the checksums of the weights",
    codes={ExitCode.UNEXPECTED: "something is damaged or missing, or a model cannot be read"},
)
@click.command()
@model_options
@json_option(page="schema: reference_impl/views/saved_model.py")
@click.option("--tags", help="Only the MetaGraph with exactly these tags, separated by commas.")
@list_option("--only", type=Choice(SECTIONS), help="Show only this section; several by commas.")
@click.option("--full", is_flag=True, help="Abbreviate nothing.")
@click.option(
    "--trace",
    is_flag=True,
    help="Load the model and print each step instead (needs TensorFlow).",
)
def inspect(
    models: tuple[str, ...],
    tags: str | None,
    follow_links: bool,
    trace: bool,
    **shown: Any,
) -> int:
    """Show what MODELS contain: SavedModels, saved_model.* files, folders of models, @lists, URLs.

    The sections are signatures, the object tree, functions, variables, assets, initialisers,
    effects on the machine (files, terminal, Python, network), and the ops of the graph and its
    functions.
    If something is damaged or missing, "problems" lists it, and the exit code is 1.

    --trace loads each model with `reference_impl.load` and prints each step: file, node, result,
    clause of the RFC. Loading runs initialisers. A model whose initialisers act on the machine is
    refused.

    \b
    Examples:
      savedmodel-compat inspect model
      savedmodel-compat inspect models --only signatures
      savedmodel-compat inspect model --tags serve --json
      savedmodel-compat inspect model --trace
    """
    defer_pure_messages()
    wanted = None if tags is None else [tag.strip() for tag in tags.split(",") if tag.strip()]
    if trace:
        if follow_links or any(shown.values()):
            raise click.UsageError("--trace takes no --json, --only, --full or --follow-links")
        return _trace_all(models_named(models, follow_links), wanted)
    if len(models) == 1 and _is_model(models[0]):
        return _show_one(models[0], wanted, follow_links, **shown)
    found = models_named(models, follow_links)
    if [model.file for model in found.models] == [""]:
        return _show_one(models[0], wanted, follow_links, **shown)
    return _show_all(found, wanted, follow_links, **shown)


def _is_model(path: str) -> bool:
    """Whether a path is a SavedModel, so that nothing has to be searched."""
    from reference_impl.format.names import FORMATS

    if Path(path).is_dir():
        return any(Path(path, name).exists() for name in FORMATS)
    return Path(path).exists() and Path(path).suffix in [Path(name).suffix for name in FORMATS]


def _show_one(
    path: str,
    tags: list[str] | None,
    follow_links: bool,
    as_json: bool,
    only: tuple[str, ...],
    full: bool,
) -> int:
    from reference_impl.views.model import inspect as look

    info = look(path, tags, follow_links=follow_links)
    if as_json:
        click.echo(_json({**info.to_json(), "path": path}))
    else:
        from savedmodel_tools.inspect.tree import show

        show(info, only or SECTIONS, full)
    return ExitCode.UNEXPECTED if info.problems else ExitCode.AS_EXPECTED


def _show_all(
    found: Found,
    tags: list[str] | None,
    follow_links: bool,
    as_json: bool,
    only: tuple[str, ...],
    full: bool,
) -> int:
    """Many models, or what a search found; a model that cannot be read is one line."""
    from reference_impl.views.model import inspect as look
    from savedmodel_tools.inspect.tree import show

    code, described = ExitCode.AS_EXPECTED, []
    for model, answer in answers(
        found.models, lambda path: look(path, tags, follow_links=follow_links)
    ):
        said: dict[str, Any] = {"path": model.name}
        info = None if isinstance(answer, Exception) else answer
        if isinstance(answer, Exception):
            said["error"] = told(answer)
        code = ExitCode.UNEXPECTED if info is None or info.problems else code
        described.append(said if info is None else {**said, **info.to_json(), **said})
        if not as_json:
            if info is None:
                click.echo(printable(said["error"], newlines=False))
            else:
                show(info, only or SECTIONS, full, model.name)
    if as_json:
        skipped = [{"path": item.name, "reason": item.reason} for item in found.skipped]
        click.echo(_json({"schema": 1, "models": described, "skipped": skipped}))
    else:
        tell_skipped(found.skipped)
    return ExitCode.UNEXPECTED if found.skipped else code


def _trace_all(found: Found, tags: list[str] | None) -> int:
    """Load each model and print the steps, below its name if there are several."""
    from savedmodel_tools.inspect.watched_load import is_loaded

    code = ExitCode.AS_EXPECTED
    for model in found.models:
        if len(found.models) > 1:
            click.echo(printable(model.name, newlines=False))
        for _, answer in answers([model], lambda path: is_loaded(path, tags)):
            if isinstance(answer, Exception):
                click.echo(printable(told(answer), newlines=False), err=True)
            if answer is not True:
                code = ExitCode.UNEXPECTED
    tell_skipped(found.skipped)
    return ExitCode.UNEXPECTED if found.skipped else code


def _json(value: Any) -> str:
    import json

    return json.dumps(value, separators=(",", ":"))
