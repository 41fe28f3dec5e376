"""The report of a run in several pasts, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from compat_matrix.report.terminal import EXIT_WORDS, MAX_LISTED
from reference_impl.format.container.files import shown
from savedmodel_common.exit_codes import ExitCode


def render(summary: Mapping[str, Any], out: Path, console: Console) -> None:
    """Print a line for each past, the cells that depend on it, and the exit code.

    ``summary``: the content of pasts.json.
    """
    for past in summary["pasts"]:
        words = EXIT_WORDS[ExitCode(past["exit_code"])]
        line = (
            f"{past['text']}: {past['observed']} observed, {words}:"
            f" {shown(out / past['folder'] / 'report.html')}"
        )
        console.print(Text(line, style="" if past["exit_code"] == 0 else "red"), soft_wrap=True)
    known = [one for one in summary["differences"] if one["expected"]]
    found = [one for one in summary["differences"] if not one["expected"]]
    for one in found[:MAX_LISTED]:
        _difference(one, out, console)
    if len(found) > MAX_LISTED:
        console.print(f"  ... and {len(found) - MAX_LISTED} more, see pasts.json", highlight=False)
    if known:
        console.print(
            f"{len(known)} differences between results that the ledger expects: see pasts.json",
            highlight=False,
        )
    console.print(
        f"compared {summary['compared']} pairs of results, {len(found)} depend on the past",
        highlight=False,
    )
    console.print(Text(f"  {shown(out / 'pasts.json')}"))
    code = ExitCode(summary["exit_code"])
    words = (
        "nothing was compared"
        if not summary["compared"] and code is ExitCode.INCOMPLETE
        else EXIT_WORDS[code]
    )
    console.print(
        Text(f"exit {int(code)}: {words}", style="bold green" if code == 0 else "bold red")
    )


def _difference(one: Mapping[str, Any], out: Path, console: Console) -> None:
    """Print one cell: both results, their evidence, and the commands that repeat them."""
    console.print(
        Text(
            f"{one['cell']} depends on the past: {one['differs'].replace('_', ' ')}",
            style="bold red",
        ),
        soft_wrap=True,
    )
    lines = [f"past 0: {one['plain']}", f"past {one['past']}: {one['other']}"]
    lines += [f"differing: {', '.join(one['names'])}"] if one["names"] else []
    lines += [f"evidence: {shown(out / path)}" for path in one["evidence"].values()]
    lines += [f"replay: {command}" for command in one["replay"]]
    for line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)
