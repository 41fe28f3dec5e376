"""The version grid as text: a field, a Markdown table, a terminal table.

`compat_matrix.verdict.tally` has the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import InvalidVersion, Version
from rich.table import Table
from rich.text import Text

from compat_matrix.verdict.tally import NOT_RUN, PASSED, UNEXPECTED


def field_words(field: Mapping[str, Any] | None) -> str:
    """Return ``34/41``, with ``!2`` for unexpected results and ``?3`` for cells that were not
    run.
    """
    if field is None:
        return ""
    words = f"{field[PASSED]}/{field['asked']}"
    return words + "".join(
        f" {sign}{field[key]}" for sign, key in (("!", UNEXPECTED), ("?", NOT_RUN)) if field[key]
    )


def minor(version: str) -> str:
    """Return ``2.12`` for ``2.12.1``; a local label is kept."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return version
    return f"{parsed.major}.{parsed.minor}" + (f"+{parsed.local}" if parsed.local else "")


def markdown(table: Mapping[str, Any]) -> list[str]:
    """Return the lines of a Markdown table with a row per writer and a column per reader."""
    lines = ["| written by | " + " | ".join(minor(reader) for reader in table["readers"]) + " |"]
    lines.append("|---" * (len(table["readers"]) + 1) + "|")
    lines += [
        f"| {minor(writer)} | " + " | ".join(map(field_words, fields)) + " |"
        for writer, fields in table["rows"]
    ]
    return lines


def terminal_table(table: Mapping[str, Any]) -> Table:
    """Return the same table for a terminal."""
    out = Table(
        title=f"written by {table['producer']}, read by {table['consumer']}",
        header_style="bold",
        title_justify="left",
    )
    out.add_column("written by \\ read by", no_wrap=True)
    for reader in table["readers"]:
        out.add_column(minor(reader), justify="right", no_wrap=True)
    for writer, fields in table["rows"]:
        out.add_row(writer, *(Text(field_words(field), style=_style(field)) for field in fields))
    return out


def _style(field: Mapping[str, Any] | None) -> str:
    if field is None or field[NOT_RUN]:
        return "dim"
    if field[UNEXPECTED]:
        return "bold red"
    return "green" if field[PASSED] == field["asked"] else "yellow"
