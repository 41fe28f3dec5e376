"""Options that had another name: the old one is still taken, and a line on stderr says the new one."""

from __future__ import annotations

import click


def renaming(**new: str) -> type[click.Command]:
    """A class of commands that take old options: ``renaming(image="--server")`` takes ``--image`` as ``--server``."""
    known = {f"--{old}": name for old, name in new.items()}

    class Renaming(click.Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            own = args.index("--") if "--" in args else len(args)
            return super().parse_args(ctx, [*map(self._renamed, args[:own]), *args[own:]])

        @staticmethod
        def _renamed(word: str) -> str:
            old, equals, value = word.partition("=")
            if old not in known:
                return word
            click.echo(f"{old} is called {known[old]} now", err=True)
            return known[old] + equals + value

    return Renaming
