"""The first node whose value differs between the original and the converted model.

The evaluator names the value of each node of the original in the order in which they run. A
converter keeps many names, behind the names of the calls that it inlined: ``dense/MatMul`` becomes
``StatefulPartitionedCall/dense/MatMul:0``. The values under one name are compared, within the noise
that the node itself has between float32 and float64.
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
from savedmodel_prove.questions import Inputs
from savedmodel_prove.sides.evaluator import Evaluator, Trace
from savedmodel_prove.sides.side import Side, SideError
from savedmodel_prove.verdicts import agrees, allowed_difference, distance

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
    trace = evaluator.trace(inputs)
    doubles = _exact_values(exact, inputs)
    often = Counter((ran.function, ran.node) for ran in trace.ran)
    once = [ran for ran in trace.ran if often[ran.function, ran.node] == 1]  # others are in loops
    names = _Names(theirs, once, trace)
    rows: dict[int, Row] = {}
    for ran in once:
        name = names.of(ran)
        if name is not None:
            double = doubles.get((ran.function, ran.node))
            rows[id(ran)] = _row(ran, ran.values[0], name, theirs[name], double)
    healed = _healed(trace.ran, rows)
    return [replace(row, parts=row.parts and place not in healed) for place, row in rows.items()]


def _healed(ran: Sequence[Ran], rows: Mapping[int, Row]) -> set[int]:
    """Return the nodes that differ although the next nodes after them agree.

    A converter may keep a name for another value: a fused op has the name of its first node. The
    keys are those of ``rows``: the ids of the nodes that ran.
    """
    followed: dict[int, list[bool]] = {}  # node -> whether each next node with a row agrees
    nearest: dict[int, frozenset[int]] = {}  # value -> the last nodes with a row that it depends on
    for one in ran:
        before: set[int] = set()
        for value in _flat(one.inputs):
            before |= nearest.get(id(value), frozenset())
        row = rows.get(id(one))
        if row is not None:
            for place in before:
                followed.setdefault(place, []).append(not row.parts)
        behind = frozenset(before) if row is None else frozenset((id(one),))
        for value in one.values:
            nearest.setdefault(id(value), behind)
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
      values: the values of the converted model by name.
      ran: the nodes of the original.
      trace: tells which of them make the outputs.
    """

    def __init__(self, values: Mapping[str, Tensor], ran: Sequence[Ran], trace: Trace) -> None:
        self._there = {name.removesuffix(":0"): name for name in values}
        self._outputs = {id(value): name for name, value in trace.outputs.items() if name in values}
        self._prefixes = _prefixes(self._there, ran)

    def of(self, ran: Ran) -> Optional[str]:
        """Return the name of a node's first result; None where the converted model has none."""
        if not ran.values or not isinstance(ran.values[0], np.ndarray):
            return None
        prefix = self._prefixes.get(ran.function, "")
        found = self._there.get(f"{prefix}{ran.node}")
        return found or self._outputs.get(id(ran.values[0]))


def _prefixes(there: Collection[str], ran: Sequence[Ran]) -> dict[str, str]:
    """Return what stands before the names of a function's nodes in the converted model.

    It is the prefix that most nodes of the function share, e.g. ``StatefulPartitionedCall/``.
    """
    by_end: dict[str, list[str]] = {}
    for name in there:
        for prefix, end in _parted(name):
            by_end.setdefault(end, []).append(prefix)
    votes: dict[str, Counter[str]] = {}
    for one in ran:
        votes.setdefault(one.function, Counter()).update(by_end.get(one.node, ()))
    return {function: found.most_common(1)[0][0] for function, found in votes.items() if found}


def _parted(name: str) -> Iterator[tuple[str, str]]:
    """Yield a name in two parts: ``("", "a/b/c")``, ``("a/", "b/c")``, ``("a/b/", "c")``."""
    parts = name.split("/")
    for start in range(len(parts)):
        prefix = "".join(f"{part}/" for part in parts[:start])
        yield prefix, "/".join(parts[start:])


def _row(ran: Ran, value: Array, name: str, theirs: Tensor, double: object) -> Row:
    expected = tensors.from_numpy(value)
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
