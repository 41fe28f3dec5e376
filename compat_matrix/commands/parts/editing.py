"""What the commands that edit models have in common: where results go, what is said of them, how a tree is gone through."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compat_matrix.cli import HARNESS_ERROR, UNEXPECTED
from compat_matrix.commands.parts.models import models_named, tell_skipped
from compat_matrix.common.printable import printable

if TYPE_CHECKING:
    from compat_matrix.models.edits.draft import Draft
    from compat_matrix.models.find import Model


def edit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``MODEL``, ``--out``, ``--dry-run``, ``--json`` and ``--follow-links`` to a command, which returns the edit itself.

    The command returns a function of a `Draft`; it is applied to the model, or to every model of the tree or list MODEL.
    """

    @functools.wraps(function)
    def wrapped(model: str, out: str | None, dry_run: bool, as_json: bool, follow_links: bool, **rest: Any) -> int:
        if (out is None) != dry_run:
            raise click.UsageError("say where the result goes (--out DIRECTORY), or --dry-run")
        change = function(**rest)
        return _run(model, out, change, as_json, follow_links)

    for option in (
        click.argument("model"),
        click.option("--out", metavar="DIRECTORY", help="New directory for the result; of a tree, for all of them."),
        click.option("--dry-run", is_flag=True, help="Write nothing, say what would be done."),
        click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/editing.md)."),
        click.option("--follow-links", is_flag=True, help="Accept symbolic links that lead out of a directory."),
    ):
        wrapped = option(wrapped)
    # The model comes first on the command line, whatever else the command takes.
    parameters = wrapped.__click_params__  # type: ignore[attr-defined]
    parameters.append(parameters.pop(next(n for n, item in enumerate(parameters) if item.name == "model")))
    return wrapped


tags_option = click.option("--tags", help="Tags of the MetaGraph, separated by commas; needed where there are several.")


def models_of(argument: str, follow_links: bool) -> tuple[list[tuple[Model, str]], list[Any]]:
    """Each model with its place below the output ("" for the only one), and what was not looked into."""
    found = models_named([argument], follow_links=follow_links)
    if len(found.models) == 1 and not found.skipped and found.models[0].name.rstrip("/") == argument.rstrip("/"):
        return [(found.models[0], "")], []
    places = [item.relative for item in found.models]
    twice = sorted({place for place in places if places.count(place) > 1})
    if twice:
        raise click.UsageError(printable(f"several models would be written to {', '.join(twice[:3])}: name them one by one"))
    return list(zip(found.models, places)), found.skipped


def _run(argument: str, out: str | None, change: Callable[[Draft], None], as_json: bool, follow_links: bool) -> int:
    models, skipped = models_of(argument, follow_links)
    code, lines = 0, []
    tell_skipped(skipped)
    for model, place in models:
        target = None if out is None else str(Path(out, place)) if place else out
        line, status = _one(model, target, change, follow_links)
        code = max(code, status)
        lines.append(line)
        if not as_json:
            _show(line)
    if as_json:
        gone = [vars(item) for item in skipped]
        click.echo(json.dumps({"schema": 1, "dry_run": out is None, "models": lines, "skipped": gone}))
    return code or (UNEXPECTED if skipped else 0)


def _one(model: Model, out: str | None, change: Callable[[Draft], None], follow_links: bool) -> tuple[dict[str, Any], int]:
    from compat_matrix.models.edits.result import edit
    from reference_impl.errors import SavedModelError, about_the_model

    try:
        with model.local() as path:
            done = edit(path, out, change, follow_links=follow_links)
    except (SavedModelError, OSError) as error:
        status = UNEXPECTED if about_the_model(error) else HARNESS_ERROR
        click.echo(printable(f"{type(error).__name__}: {error}"), err=True)
        return {"source": model.name, "output": None, "error": {"class": type(error).__name__, "message": str(error)}}, status
    return {**done.to_json(), "source": model.name}, 0


def _show(line: dict[str, Any]) -> None:
    if "error" in line:
        return
    arrow = f" -> {line['output']}" if line["output"] else " (dry run: nothing is written)"
    click.echo(printable(f"{line['source']}{arrow}", newlines=False))
    for text in _lines(line):
        click.echo(printable(f"  {text}", newlines=False))


def _lines(line: dict[str, Any]) -> Iterator[str]:
    yield from line["changes"] or ["nothing to do"]
    for text in line["kept"]:
        yield f"kept: {text}"
    before, after = line["before"], line["after"]
    parts = [f"{word} {before[key]:,} -> {after[key]:,}" for key, word in _WORDS.items() if before[key] != after.get(key)]
    if parts:
        yield "; ".join(parts)


_WORDS = {
    "checkpoint_bytes": "checkpoint bytes",
    "graph_bytes": "graph bytes",
    "nodes": "nodes",
    "functions": "functions",
    "function_nodes": "their nodes",
    "objects": "objects",
}
