"""The result of ``diff`` as notebooks show it."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.errors import shortened
from reference_impl.views import html
from savedmodel_tools.comparison.model import Change, Side

_LONG = 200  # characters of a sentence


def show(sides: Iterable[Side], verdict: str, changes: Iterable[Change]) -> str:
    """Return the HTML of a comparison: the verdict, and a row for each change, those that count
    first.
    """
    ordered = sorted(changes, key=lambda change: not change.counts)
    lines = (
        html.line(
            html.dim(f"{letter} "),
            html.path(side.path),
            html.dim(" TensorFlow "),
            html.code(", ".join(side.produced_by) or "?"),
        )
        for letter, side in zip("AB", sides)
    )
    return html.block(
        *lines,
        html.line(html.strong(verdict)),
        html.table(("section", "change", "where", "what"), map(_row, ordered)),
    )


def _row(change: Change) -> tuple[str, ...]:
    kind = html.strong(change.kind) if change.counts else html.dim(change.kind)
    return (
        html.dim(change.section),
        kind,
        html.code(": ".join(change.where)),
        html.code(shortened(change.what, _LONG)),
    )
