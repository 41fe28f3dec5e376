"""Tables and paragraphs of generated pages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 120  # characters of a line


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table.

    The site shows a filter above one of more than 15 rows (docs/assets/filter.js).
    """
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def wrapped(text: str, first: str = "", rest: str = "") -> str:
    """Return a paragraph, or an item of a list, in lines of `WIDTH` characters.

    Args:
      first: what its first line begins with ("- ").
      rest: what its other lines begin with.
    """
    lines = textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return re.sub(
        r"(?<=\n)( *)([-+*#>] )", r"\1\\\2", lines
    )  # a dash that comes to stand first is not a new item
