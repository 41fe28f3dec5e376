"""Common parts of `gate run` and `gate compare`: the options of the verdict, and its report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from savedmodel_common.command_line.common import json_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted

if TYPE_CHECKING:
    from compat_matrix.gate.pairs import Pair

GREEN = "no pair regressed, vanished or drifted beyond the tolerance of its case"
CODES = {
    ExitCode.UNEXPECTED: (
        "something regressed, vanished, is unstable, or drifted beyond the tolerance of its case"
    ),
    ExitCode.INCOMPLETE: (
        "a pair has no result, nothing was compared, or something named was not asked"
    ),
}


def verdict_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what blocks and what is printed."""
    for option in (
        click.option(
            "--same",
            is_flag=True,
            help="Allow the same TensorFlow, or the same run, on both sides.",
        ),
        click.option(
            "--fail-on-drift",
            is_flag=True,
            help="Block on answers that differ within the tolerance of their case, too.",
        ),
        click.option(
            "--accept-known",
            is_flag=True,
            help="Do not block on regressions that the ledger lists.",
        ),
        click.option("--full", is_flag=True, help="List every pair that changed."),
        json_option("the pairs that changed, by kind, as JSON"),
    ):
        function = option(function)
    return function


@dataclass(frozen=True)
class Wanted:
    """The options of :func:`verdict_options`, and ``--quiet``."""

    fail_on_drift: bool
    accept_known: bool
    full: bool
    as_json: bool
    quiet: bool


def tell(
    out: Path | None, pairs: list[Pair], sides: Sequence[Mapping[str, str]], wanted: Wanted
) -> int:
    """Compare the pairs, write the reports to ``out`` unless it is None, and print the verdict.

    Return the exit code.
    """
    from rich.console import Console

    from compat_matrix.engine import running
    from compat_matrix.gate import run as gating
    from compat_matrix.report.gate_words import by_kind
    from compat_matrix.report.progress import announce

    console = Console(quiet=True) if wanted.as_json else running.stdout_console()
    if not wanted.quiet:
        announce(f"comparing {counted(len(pairs), 'pair')}")
    verdict = gating.report(
        out,
        pairs,
        sides,
        console,
        full=wanted.full,
        fail_on_drift=wanted.fail_on_drift,
        accept_known=wanted.accept_known,
    )
    if wanted.as_json:
        click.echo(json.dumps(by_kind(verdict)))
    return int(verdict["exit_code"])


def refuse_twice(specs: Sequence[str], same: bool) -> None:
    """Raise UsageError unless one TensorFlow, or one run, may stand on both sides."""
    if not same:
        both = specs[0] if specs[0] == specs[1] else " and ".join(specs)
        raise click.UsageError(
            f"baseline and candidate are the same ({both}), so nothing could differ. --same"
            " compares them anyway"
        )
