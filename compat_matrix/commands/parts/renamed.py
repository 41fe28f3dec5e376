"""Options that had another name: the old one is still taken, and a line on stderr says the new one."""

from __future__ import annotations

import click

from compat_matrix.common.moved_commands import options_of_today


def renaming(**new: str) -> type[click.Command]:
    """A class of commands that take old options: ``renaming(image="--server")`` takes ``--image`` as ``--server``."""
    known = {f"--{old}": name for old, name in new.items()}

    class Renaming(click.Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            return super().parse_args(ctx, options_of_today(args, known, lambda line: click.echo(line, err=True)))

    return Renaming
