"""Two folders of models, compared model by model: those of one relative path belong together."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import click

from reference_impl.errors import SavedModelError, about_the_model
from savedmodel_common.printable import counted, told
from savedmodel_tools.comparison import diff
from savedmodel_tools.comparison.model import Options
from savedmodel_tools.comparison.result import ModelDiff
from savedmodel_tools.comparison.text import clean
from savedmodel_tools.find import Model
from savedmodel_tools.jobs import Died, ordered

EQUAL, CLOSE, DIFFERENT, FIRST, SECOND, REFUSED, UNREAD = (
    *("equal", "close", "different"),
    *("only in the first", "only in the second", "refused", "unread"),
)
STATUSES = (EQUAL, CLOSE, DIFFERENT, FIRST, SECOND, REFUSED, UNREAD)
_MARKS = {
    EQUAL: ("=", "green"),
    CLOSE: ("≈", "green"),
    DIFFERENT: ("≠", "yellow"),
    FIRST: ("-", "red"),
    SECOND: ("+", "green"),
}


class Pair(NamedTuple):
    """One relative path. ``status`` is one of STATUSES; ``refused`` is a model that cannot be read,
    ``unread`` a file that the machine does not give. ``reason`` tells why; else there is a
    ``result`` where both sides have the model."""

    path: str
    status: str
    result: Optional[ModelDiff] = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"path": self.path, "status": self.status}
        if self.reason:
            out["reason"] = self.reason
        return out if self.result is None else {**out, "diff": self.result.to_json()}


def pairs(
    first: Sequence[Model], second: Sequence[Model], options: Options, jobs: int = 1
) -> Iterator[Pair]:
    """Compare the models of two trees in processes, in the order of their paths.

    An unreadable one does not stop the others.
    """
    mine = {model.relative: model for model in first}
    yours = {model.relative: model for model in second}
    paths = sorted(mine.keys() | yours.keys())
    both = [(path, mine[path], yours[path]) for path in paths if path in mine and path in yours]
    compared = ordered(functools.partial(_pair, options), both, jobs)
    for path in paths:
        if path not in yours:
            yield Pair(path, FIRST)
        elif path not in mine:
            yield Pair(path, SECOND)
        else:
            pair = next(compared)
            yield Pair(path, UNREAD, reason=pair.reason) if isinstance(pair, Died) else pair


def _pair(options: Options, item: tuple[str, Model, Model]) -> Pair:
    path, mine, yours = item
    try:
        with mine.local() as one, yours.local() as other:
            result = diff(one, other, options)
    except (SavedModelError, OSError) as error:
        refused = about_the_model(error)
        return Pair(path, REFUSED if refused else UNREAD, reason=told(error))
    return Pair(path, result.verdict, result)


def pair_line(pair: Pair) -> str:
    """A model of a tree in one line."""
    mark, colour = _MARKS.get(pair.status, ("!", "red"))
    said = pair.reason or (pair.result.counts if pair.result is not None else pair.status)
    return f"{click.style(mark, fg=colour)} {clean(pair.path)}" + (
        f"  {clean(said)}" if said else ""
    )


def summary(found: Sequence[Pair]) -> str:
    """Return the number of models by status."""
    numbers = Counter(pair.status for pair in found)
    words = [f"{numbers[status]} {status}" for status in STATUSES if numbers[status]]
    return f"{counted(len(found), 'model')}: {', '.join(words)}"
