"""Options that mean the same in every command that has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class CommonOption(click.Option):
    """An option of this module: ``--help`` lists it last, and the page of the commands explains it
    once.
    """


def json_option(what: str = "one JSON object", page: str = "") -> Decorator:
    """Return ``--json``, which prints ``what``. A ``page`` of the documentation describes it."""
    where = f" ({page})" if page else ""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        cls=CommonOption,
        help=f"Print {what} in place of text{where}.",
    )


follow_links_option = click.option(
    "--follow-links",
    is_flag=True,
    cls=CommonOption,
    help="Read through symbolic links that lead out of a model's directory.",
)
jobs_option = click.option(
    "-n",
    "--jobs",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    cls=CommonOption,
    help="Processes, each with one model at a time.",
)
quiet_option = click.option(
    "-q", "--quiet", is_flag=True, cls=CommonOption, help="Print no progress on stderr."
)
