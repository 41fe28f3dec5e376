"""The text of the ledger: cut into entries that keep their bytes, edited in place, or written anew.

A block is an ``[[expect]]`` table with the comment lines right above it. (A TOML library counts the
comment above a table to the table before: deleting that one would lose it.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from compat_matrix.cells.results import one_line
from compat_matrix.verdict.entries import Entry
from compat_matrix.verdict.ledger import Ledger

FIELDS = (
    *("case", "producer", "producer_version", "consumer", "consumer_version", "check"),
    *(
        "outcome",
        "error_class",
        "message",
        "kind",
        "reason",
        "issue",
        "added",
        "until",
        "wide",
    ),
)
WIDTH = 120  # of a line of a list


def split_blocks(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Cut a file into the text before the first entry, and each entry with the comment lines above
    it and the free text behind it."""
    pieces: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if re.match(r"\s*\[\[\s*expect\s*\]\]\s*(#.*)?$", line):
            block: list[str] = []
            while pieces[-1] and pieces[-1][-1].lstrip().startswith("#"):
                block.insert(0, pieces[-1].pop())
            pieces.append(block)
        pieces[-1].append(line)
    return "".join(pieces[0]), [_cut_behind(piece) for piece in pieces[1:]]


def _cut_behind(lines: list[str]) -> tuple[str, str]:
    """Cut a block at the first empty line behind the last key: comments below that line do not
    belong to the entry.
    """
    last = max(
        i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")
    )
    end = next((i for i in range(last, len(lines)) if not lines[i].strip()), len(lines))
    return "".join(lines[:end]), "".join(lines[end:])


def edited(block: str, facts: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return a block with the fields ``names`` taken from ``facts``; fields that ``facts`` lacks
    are removed.
    """
    import tomlkit

    document: Any = tomlkit.parse(block)
    table = document["expect"][0]
    for name in names:
        if name in facts:
            table[name] = facts[name]
        elif name in table:
            del table[name]
    return str(tomlkit.dumps(document))


def comments_above(block: str) -> str:
    """Return the comment lines at the beginning of a block."""
    return (
        block[: block.index("[[")].rpartition("\n")[0] + "\n"
        if "#" in block[: block.index("[[")]
        else ""
    )


def table_text(facts: Mapping[str, Any]) -> str:
    """Return the text of a new entry."""
    lines = (f"{name} = {_value(name, facts[name])}\n" for name in FIELDS if name in facts)
    return "[[expect]]\n" + "".join(lines)


def _value(name: str, value: Any) -> str:
    import tomlkit

    if isinstance(value, list):
        return _list(name, [json.dumps(item) for item in value])
    if not isinstance(value, str):
        return str(tomlkit.item(value).as_string())
    value = one_line(value, len(value))
    literal = name == "message" and "\\" in value and "'" not in value
    return str(tomlkit.string(value, literal=literal).as_string())


def _list(name: str, words: list[str]) -> str:
    whole = f"[{', '.join(words)}]"
    if len(name) + len(whole) + 3 <= WIDTH:
        return whole
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {word},"
    return "[\n" + "\n".join([*lines, line]) + "\n]"


def alone(block: str) -> Entry:
    """Return the parsed entry of a block."""
    return Ledger.parse("schema = 1\n" + block).entries[0]
