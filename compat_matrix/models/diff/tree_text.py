"""A comparison of two folders of models as text: a line for each model, and how many there are of each status."""

from __future__ import annotations

from collections.abc import Sequence

import click

from compat_matrix.common.printable import counted
from compat_matrix.comparison.text import clean
from compat_matrix.models.diff.trees import CLOSE, DIFFERENT, EQUAL, FIRST, SECOND, STATUSES, Pair

_MARKS = {EQUAL: ("=", "green"), CLOSE: ("≈", "green"), DIFFERENT: ("≠", "yellow"), FIRST: ("-", "red"), SECOND: ("+", "green")}


def pair_line(pair: Pair) -> str:
    """A model of a tree in one line."""
    mark, colour = _MARKS.get(pair.status, ("!", "red"))
    said = pair.reason or (pair.result.counts if pair.result is not None else pair.status)
    return f"{click.style(mark, fg=colour)} {clean(pair.path)}" + (f"  {clean(said)}" if said else "")


def summary(found: Sequence[Pair]) -> str:
    """Return the number of models by status."""
    numbers = [(status, sum(pair.status == status for pair in found)) for status in STATUSES]
    return f"{counted(len(found), 'model')}: " + ", ".join(f"{number} {status}" for status, number in numbers if number)
