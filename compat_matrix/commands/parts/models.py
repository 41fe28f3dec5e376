"""What the commands about models at rest have in common: how models are named on a command line, which findings fail."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from compat_matrix.common.printable import printable


def model_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``MODELS...``, ``--from-file`` and ``--follow-links`` to a command, which is given ``found`` in their place.

    ``found`` is a `compat_matrix.models.find.Found`, and ``follow_links`` is handed on as well. What cannot be used is
    wrong usage (64).
    """

    @functools.wraps(function)
    def wrapped(models: tuple[str, ...], lists: tuple[str, ...], follow_links: bool, **rest: Any) -> Any:
        from compat_matrix.models.find import Unusable, find

        try:
            found = find(models, lists, follow_links=follow_links)
        except Unusable as error:
            raise click.UsageError(printable(str(error), newlines=False)) from error
        return function(found=found, follow_links=follow_links, **rest)

    return model_options(wrapped)


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``MODELS...``, ``--from-file`` and ``--follow-links`` to a command that finds its models itself."""
    for option in (
        click.argument("models", nargs=-1, metavar="MODELS..."),
        click.option("--from-file", "lists", multiple=True, metavar="FILE", help="A list of models, one a line (- is stdin)."),
        click.option("--follow-links", is_flag=True, help="Accept symbolic links that lead out of a directory."),
    ):
        function = option(function)
    return function


def fail_on_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--fail-on`` for findings of `verify`; ``text`` says what follows from them."""
    levels = click.Choice(["info", "warning", "error", "never"])
    return click.option("--fail-on", type=levels, default="error", show_default=True, help=text)
