"""Lists about models: one block of lines, or one member of a JSON object, for each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from compat_matrix.commands.parts.editing import models_of
from compat_matrix.commands.parts.models import answers, tell_skipped
from compat_matrix.common.exit_codes import ExitCode
from compat_matrix.common.printable import message_of, printable, told


def run(
    argument: str,
    as_json: bool,
    follow_links: bool,
    ask: Callable[[Any], list[dict[str, Any]]],
    show: Callable[[dict[str, Any]], list[str]],
) -> int:
    """Ask every model that the argument names.

    Args:
      ask: `layout.Layout` -> something for each MetaGraph.
      show: its lines.

    Returns:
      The exit code: 1 when a model cannot be read, or a folder was not looked into.
    """
    from reference_impl.errors import about_the_model
    from reference_impl.format.container import layout

    models, skipped = models_of(argument, follow_links)
    found: list[dict[str, Any]] = []
    code = ExitCode.UNEXPECTED if skipped else 0
    for model, graphs in answers((model for model, _ in models), lambda path: ask(layout.read(path, follow_links=follow_links))):
        if isinstance(graphs, Exception):
            code = max(code, ExitCode.UNEXPECTED if about_the_model(graphs) else ExitCode.HARNESS_ERROR)
            click.echo(printable(told(graphs)), err=True)
            found.append({"source": model.name, "error": {"class": type(graphs).__name__, "message": message_of(graphs)}})
            continue
        found.append({"source": model.name, "meta_graphs": graphs})
        if not as_json:
            lines = [line for graph in graphs for line in show(graph)]
            for line in [model.name, *lines] if len(models) > 1 else lines:
                click.echo(printable(line, newlines=False))
    tell_skipped(skipped)
    if as_json:
        click.echo(json.dumps({"schema": 1, "models": found, "skipped": [item._asdict() for item in skipped]}))
    return code
