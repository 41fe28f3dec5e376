"""Values that a shell completes: names of cases, consumers, checks, runtimes; folders of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, ZshComplete

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class ZshWithCompinit(ZshComplete):
    """zsh, also where .zshrc has not started its completion, so that `compdef` is unknown."""

    source_template = (
        "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }\n"
        + ZshComplete.source_template
    )


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete folders, for an argument that names models."""
    return [CompletionItem(incomplete, type="dir")]


def names(of: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Return a completer for names. ``of`` reads them, and imports what it needs for that.

    For example ``names(lambda _: ("tf2", "c_api"))`` completes ``c`` to ``c_api``.
    """

    def complete(
        context: click.Context, _: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        found = sorted(dict.fromkeys(of(context)))
        return [CompletionItem(name) for name in found if name.startswith(incomplete)]

    return complete
