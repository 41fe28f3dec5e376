"""Options with a reading of their own: those that take several values, and choices."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from savedmodel_common.printable import like

_NAMES = re.compile(r"[\s,]+")
_SERVERS = re.compile(
    r"\s*,\s*(?!\d+(?:[/,]|$))"
)  # not in front of the second port of remote:HOST:8500,8501


class Choice(click.Choice[str] if TYPE_CHECKING else click.Choice):  # type: ignore[misc]
    """A choice whose error names the values that a wrong one is like."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(error.message + like(str(value), self.choices), param, ctx)


class _List(click.Option):
    """An option whose values are cut into their parts."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            parts = (self._parts(ctx, text) for text in value)
            value = list(itertools.chain.from_iterable(parts))
        return super().type_cast_value(ctx, value)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the part behind the last comma."""
        before, comma, last = incomplete.rpartition(",")
        found = super().shell_complete(ctx, last)
        return [CompletionItem(f"{before}{comma}{one.value}", one.type) for one in found]

    def _parts(self, ctx: click.Context, text: str) -> list[str]:
        parts = [part for part in self.cut(text) if part]
        if not parts:
            raise click.BadParameter("it names nothing", ctx, self)
        return parts

    def cut(self, text: str) -> list[str]:
        """Return the parts of a value.

        One that gives a name something, as in NAME=COMMAND, is one part whatever it holds.
        """
        return [text] if "=" in text else _NAMES.split(text)


class _Servers(_List):
    def cut(self, text: str) -> list[str]:
        """Return the servers that a value names."""
        return _SERVERS.split(text.strip())


def list_option(*names: str, **settings: Any) -> Callable[..., Any]:
    """Return an option that takes several values; the function gets a tuple.

    An empty value is wrong usage.
    """
    return click.option(*names, cls=_List, multiple=True, **settings)


def servers_option(*names: str, **settings: Any) -> Callable[..., Any]:
    """Return an option that takes several model servers."""
    return click.option(*names, cls=_Servers, multiple=True, metavar="SERVER", **settings)
