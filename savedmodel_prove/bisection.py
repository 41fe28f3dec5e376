"""The first node at which TensorFlow and the evaluator part, found by asking one value at a time.

A value that is asked alone is computed as an output is: TensorFlow fuses the ops before it. To ask
all values in one call (`nodes.compared`) prevents that, and hides a fault of a fused kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional, Protocol, runtime_checkable

from reference_eval.executor import Ran
from savedmodel_common.tensors import Tensor
from savedmodel_prove.nodes import Row, Traced
from savedmodel_prove.questions import Inputs
from savedmodel_prove.sides.evaluator import Evaluator


@runtime_checkable
class Single(Protocol):
    """A program that can be asked for one value inside a signature."""

    def names(self) -> list[str]:
        """Return the names of the values. Raises SideError."""

    def value(self, inputs: Mapping[str, Tensor], name: str) -> Tensor:
        """Return one value, from a graph that computes nothing else. Raises SideError."""


def first_apart(
    evaluator: Evaluator, exact: Optional[Evaluator], asked: Single, inputs: Inputs, output: str
) -> Optional[Row]:
    """Return the node that differs although all nodes before it agree; None if there is none.

    Args:
      evaluator: of the original, in float32.
      exact: of the original, in float64, or None.
      asked: the other program with the same model.
      inputs: of one question.
      output: the output that differs.

    Raises SideError: one of them gives no value.
    """
    return _Search(Traced(evaluator, exact, inputs, asked.names()), asked, inputs).of(output)


class _Search:
    """Asks for values, each once."""

    def __init__(self, traced: Traced, asked: Single, inputs: Inputs) -> None:
        self._traced, self._asked, self._inputs = traced, asked, inputs
        self._named = {id(ran): (ran, name) for ran, name in traced.named}
        self._rows: dict[int, Row] = {}

    def of(self, output: str) -> Optional[Row]:
        needed = self._needed(output)
        last = next((place for place in self._traced.of_output(output) if self._parts(place)), None)
        if last is None:
            return None
        return self._rows[self._first(self._bisected(needed, last))]

    def _needed(self, output: str) -> list[int]:
        """Return the named nodes that an output depends on, in the order in which they ran."""
        found, queue = set(), list(self._traced.of_output(output))
        while queue:
            place = queue.pop()
            if place not in found:
                found.add(place)
                queue += self._traced.before[place]
        return [place for place in self._named if place in found]

    def _bisected(self, needed: list[int], last: int) -> int:
        """Return a node that differs, where the one that ran before it agrees."""
        low, high = -1, needed.index(last)
        while high - low > 1:
            middle = (low + high) // 2
            if self._parts(needed[middle]):
                high = middle
            else:
                low = middle
        return needed[high]

    def _first(self, place: int) -> int:
        """Return the first node that differs among those that lead to a node."""
        while True:
            earlier = [one for one in self._traced.before[place] if self._parts(one)]
            if not earlier:
                return place
            place = earlier[0]

    def _parts(self, place: int) -> bool:
        if place not in self._rows:
            ran, name = self._named[place]
            self._rows[place] = self._row(ran, name)
        return self._rows[place].parts

    def _row(self, ran: Ran, name: str) -> Row:
        return self._traced.row(ran, self._asked.value(self._inputs, name))
