"""Small pieces of HTML for notebooks: a block, a table, a folded section.

Names in a model are untrusted. Every text is escaped and inside ``<code>``, which notebooks do
not search for formulas either. No colours are set, so a block is readable on light and dark pages.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from reference_impl.errors import printable
from reference_impl.format.container import files

MOST_ROWS = 20  # of a table, and items of a list


def code(text: object) -> str:
    """Return text from a model, escaped.

    Characters that cannot be seen become escapes such as ``\\u202e``.
    """
    return f"<code>{html.escape(printable(str(text)))}</code>"


def path(text: str) -> str:
    """Return a path as code, relative if it is below the current directory."""
    return code(files.shown(text))


def block(*parts: str) -> str:
    """Return the HTML of a whole result; parts that are empty are left out."""
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def line(*parts: str) -> str:
    """Return a line of HTML."""
    return f"<div>{''.join(parts)}</div>"


def dim(text: str) -> str:
    """Return words of ours, less visible than their neighbours."""
    return f'<span style="opacity:.7">{html.escape(text)}</span>'


def strong(text: str) -> str:
    """Return words of ours, more visible than their neighbours."""
    return f"<b>{html.escape(text)}</b>"


def listed(texts: Iterable[object]) -> str:
    """Return texts from a model, each on a line of its own."""
    found = list(texts)
    return "<br>".join([*map(code, found[:MOST_ROWS]), *_more(found)])


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or "" without rows.

    Cells are HTML; only the first rows are shown, with the number of further rows.
    """
    found = list(rows)
    if not found:
        return ""
    style = ' style="text-align:left"'  # notebooks align to the right
    lines = [
        ("th", [html.escape(name) for name in header]),
        *(("td", row) for row in found[:MOST_ROWS]),
    ]
    body = ""
    for tag, cells in lines:
        row = "".join(f"<{tag}{style}>{cell}</{tag}>" for cell in cells)
        body += f"<tr>{row}</tr>"
    return f"<table>{body}</table>{''.join(map(line, _more(found)))}"


def folded(title: str, body: str, *, shown: bool = False) -> str:
    """Return a section that a click opens, or that is open at first if `shown`; "" if it has no
    body.
    """
    return (
        f"<details{' open' if shown else ''}><summary>{title}</summary>{body}</details>"
        if body
        else ""
    )


def _more(found: Sequence[object]) -> list[str]:
    return [dim(f"… {len(found) - MOST_ROWS:,} more")] if len(found) > MOST_ROWS else []
