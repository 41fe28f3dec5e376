"""The nodes whose values differ between the evaluator and another program.

The evaluator names the value of each node of the original in the order in which they run. A
converter keeps many names, behind the names of the calls that it inlined: ``dense/MatMul`` becomes
``StatefulPartitionedCall/dense/MatMul:0``. TensorFlow itself is asked alike. The values under one
name are compared, within the noise that the node itself has between float32 and float64.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from reference_eval.executor import Ran
from savedmodel_common import tensors
from savedmodel_common.tensors import Tensor
from savedmodel_prove import prefixes
from savedmodel_prove.questions import Inputs
from savedmodel_prove.sides.evaluator import Evaluator, Trace
from savedmodel_prove.sides.side import Side, SideError
from savedmodel_prove.verdicts import agrees, allowed_difference, distance, quantized_alike

Array = npt.NDArray[Any]
SLACK = 4  # times the allowance of an output: a node inside is not rounded by what follows
MOST_AXES = 5  # of a value that may lie in another order of its axes


@dataclass(frozen=True)
class Row:
    """One node that both models name.

    Attributes:
      node: its name in the original.
      op: its op.
      theirs: its name in the converted model.
      difference: the largest absolute difference of the two values.
      allowed: the difference that counts as noise.
      parts: whether the two models part here.
    """

    node: str
    op: str
    theirs: str
    difference: float
    allowed: float
    parts: bool


def compared(
    evaluator: Evaluator, exact: Optional[Evaluator], converted: Side, inputs: Inputs
) -> list[Row]:
    """Return the nodes that both models name, in the order in which the original runs them.

    Args:
      evaluator: of the original, in float32.
      exact: of the original, in float64, or None.
      converted: the converted model.
      inputs: of one question.

    Raises SideError: one of them gives no values.
    """
    theirs = converted.values(inputs)
    traced = Traced(evaluator, exact, inputs, theirs)
    rows = {id(ran): traced.row(ran, theirs[name]) for ran, name in traced.named}
    healed = _healed(traced, rows)
    return [replace(row, parts=row.parts and place not in healed) for place, row in rows.items()]


class Traced:
    """One call of the original in the evaluator, with the names of its nodes in another program.

    Args:
      evaluator: of the original, in float32.
      exact: of the original, in float64, or None.
      inputs: of one question.
      there: the names of the values in the other program.

    Attributes:
      named: the nodes that the other program names, in the order in which they ran. A node in a
        loop has many values and is not among them.
      before: node -> the nearest named nodes that it depends on. Nodes stand for themselves by id.

    Raises SideError: the evaluator cannot run the call.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        exact: Optional[Evaluator],
        inputs: Inputs,
        there: Collection[str],
    ) -> None:
        self._trace = evaluator.trace(inputs)
        self._doubles = _exact_values(exact, inputs)
        ran = self._trace.ran
        often = Counter((one.function, one.node) for one in ran)
        once = [one for one in ran if often[one.function, one.node] == 1]
        names = _Names(there, once, self._trace)
        found = [(one, names.of(one)) for one in once]
        self.named = [(one, name) for one, name in found if name is not None]
        self._names = {id(one): name for one, name in self.named}
        self.before, self._makers = self._nearest()

    def _nearest(self) -> tuple[dict[int, frozenset[int]], dict[int, frozenset[int]]]:
        """Return `before`, and the nearest named nodes behind each value."""
        before: dict[int, frozenset[int]] = {}
        behind: dict[int, frozenset[int]] = {}  # the value of a named node has this node behind it
        for one in self._trace.ran:
            found = [behind.get(id(value), frozenset()) for value in _flat(one.inputs)]
            before[id(one)] = frozenset().union(*found)
            last = frozenset((id(one),)) if id(one) in self._names else before[id(one)]
            for value in one.values:
                behind.setdefault(id(value), last)
        return before, behind

    def of_output(self, output: str) -> frozenset[int]:
        """Return the nearest named nodes behind an output, which may be the one that makes it."""
        return self._makers.get(id(self._trace.outputs[output]), frozenset())

    def row(self, ran: Ran, theirs: Tensor) -> Row:
        """Compare a value of the other program with the evaluator's."""
        double = self._doubles.get((ran.function, ran.node))
        return _row(ran, ran.values[0], self._names[id(ran)], theirs, double)


def _healed(traced: Traced, rows: Mapping[int, Row]) -> set[int]:
    """Return the nodes that differ although the next nodes after them agree.

    A converter may keep a name for another value: a fused op has the name of its first node. The
    keys are those of ``rows``: the ids of the nodes that ran.
    """
    followed: dict[int, list[bool]] = {}  # node -> whether each next node with a row agrees
    for place, row in rows.items():
        for earlier in traced.before[place]:
            followed.setdefault(earlier, []).append(not row.parts)
    return {place for place, agree in followed.items() if all(agree)}


def _flat(inputs: Sequence[object]) -> Iterator[object]:
    for value in inputs:
        if isinstance(value, (list, tuple)):
            yield from value
        else:
            yield value


def _exact_values(exact: Optional[Evaluator], inputs: Inputs) -> dict[tuple[str, str], object]:
    """Return the first result of each node in float64, by function and node."""
    if exact is None:
        return {}
    try:
        trace = exact.trace(inputs)
    except SideError:
        return {}
    return {(one.function, one.node): one.values[0] for one in trace.ran if one.values}


class _Names:
    """Finds the name of a node in the converted model.

    Args:
      there: the names of the values in the converted model.
      ran: the nodes of the original.
      trace: tells which of them make the outputs.
    """

    def __init__(self, there: Collection[str], ran: Sequence[Ran], trace: Trace) -> None:
        self._there = {name.removesuffix(":0"): name for name in there}
        self._outputs = {id(value): name for name, value in trace.outputs.items() if name in there}
        self._prefixes = prefixes.of_functions(self._there, ran, trace.ran)

    def of(self, ran: Ran) -> Optional[str]:
        """Return the name of a node's first result; None where the converted model has none."""
        if not ran.values or not isinstance(ran.values[0], np.ndarray):
            return None
        prefix = self._prefixes.get(ran.function)
        found = None if prefix is None else self._there.get(f"{prefix}{ran.node}")
        return found or self._outputs.get(id(ran.values[0]))


def _row(ran: Ran, value: Array, name: str, theirs: Tensor, double: object) -> Row:
    expected = quantized_alike(tensors.from_numpy(value), theirs)
    noise = 0.0
    if isinstance(double, np.ndarray) and double.shape == value.shape:
        noise = distance(expected, tensors.from_numpy(double))
    allowed = SLACK * allowed_difference(expected, noise)
    got = _in_order(expected, theirs, allowed)
    parts = not agrees(expected, got, allowed)
    return Row(ran.node, ran.op, name, distance(expected, got), allowed, parts)


def _in_order(expected: Tensor, got: Tensor, allowed: float) -> Tensor:
    """Return a value with its axes in the order of the expected one: converters move channels.

    It is the order in which the two values are nearest.
    """
    rank = expected.array.ndim
    if sorted(expected.array.shape) != sorted(got.array.shape) or not 2 < rank <= MOST_AXES:
        return got
    if expected.array.shape == got.array.shape and agrees(expected, got, allowed):
        return got
    moved = (np.transpose(got.array, axes) for axes in itertools.permutations(range(rank)))
    fitting = [Tensor(got.dtype, one) for one in moved if one.shape == expected.array.shape]
    return min(fitting, key=lambda one: distance(expected, one))
