"""Groups of commands that suggest similar names, and the advice after an interruption."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from savedmodel_common.printable import like, printable

_F = TypeVar("_F", bound=Callable[..., Any])

_WHOLE = 1000  # characters of a sentence in --help


class Group(click.Group):
    """A click group that suggests similar commands for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raises UsageError with similar names.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = (
                like(name, self.list_commands(ctx)) or f" `{ctx.command_path} --help` lists them."
            )
            ctx.fail(f"unknown command {printable(name, newlines=False)!r}.{near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of ``--help``, each with its whole first sentence; click cuts it."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, one.get_short_help_str(_WHOLE))
                    for name, one in found
                    if one and not one.hidden
                ]
            )


def goes_on(words: str) -> Callable[[_F], _F]:
    """Set the advice after an interruption of a command, if it is not ``--resume``."""

    def noted(function: _F) -> _F:
        function.goes_on = words  # type: ignore[attr-defined]
        return function

    return noted
