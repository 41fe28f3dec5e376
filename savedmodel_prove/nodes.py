"""The first node whose value differs between the original and the converted model.

The evaluator names the value of each node of the original in the order in which they run. A
converter keeps many names, behind the names of the calls that it inlined: ``dense/MatMul`` becomes
``StatefulPartitionedCall/dense/MatMul:0``. The values under one name are compared, within the noise
that the node itself has between float32 and float64.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from reference_eval.executor import Ran
from savedmodel_common import tensors
from savedmodel_common.tensors import Tensor
from savedmodel_prove.questions import Inputs
from savedmodel_prove.sides.evaluator import Evaluator
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
    ours = evaluator.trace(inputs)
    doubles = _exact_values(exact, inputs)
    names = _Names(theirs)
    often = Counter((ran.function, ran.node) for ran in ours)
    rows = []
    for ran in ours:
        if often[ran.function, ran.node] > 1 or not ran.values:
            continue  # a node of a loop has many values
        value, name = ran.values[0], names.of(ran)
        if name is None or not isinstance(value, np.ndarray):
            continue
        rows.append(_row(ran, value, name, theirs[name], doubles.get((ran.function, ran.node))))
    return rows


def _exact_values(exact: Optional[Evaluator], inputs: Inputs) -> dict[tuple[str, str], object]:
    """Return the first result of each node in float64, by function and node."""
    if exact is None:
        return {}
    try:
        ran = exact.trace(inputs)
    except SideError:
        return {}
    return {(one.function, one.node): one.values[0] for one in ran if one.values}


class _Names:
    """Finds the name of a node in the converted model."""

    def __init__(self, values: Mapping[str, Tensor]) -> None:
        self._by_end: dict[str, list[str]] = {}
        for name in values:
            plain = name.removesuffix(":0")
            for end in _ends(plain):
                self._by_end.setdefault(end, []).append(name)

    def of(self, ran: Ran) -> Optional[str]:
        """Return the one name that ends with the node's; None where there is none or several."""
        found = self._by_end.get(ran.node, [])
        exact = [name for name in found if name.removesuffix(":0") == ran.node]
        if exact:
            return exact[0]
        return found[0] if len(found) == 1 else None


def _ends(name: str) -> Iterator[str]:
    """Yield a name without its first parts: ``a/b/c``, ``b/c``, ``c``."""
    parts = name.split("/")
    for start in range(len(parts)):
        yield "/".join(parts[start:])


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
    """Return a value with its axes in the order of the expected one: converters move channels."""
    rank = expected.array.ndim
    if sorted(expected.array.shape) != sorted(got.array.shape) or not 2 < rank <= MOST_AXES:
        return got
    if expected.array.shape == got.array.shape and agrees(expected, got, allowed):
        return got
    for axes in itertools.permutations(range(rank)):
        moved = Tensor(got.dtype, np.transpose(got.array, axes))
        if moved.array.shape == expected.array.shape and agrees(expected, moved, allowed):
            return moved
    return got


def first(rows: Sequence[Row]) -> Optional[Row]:
    """Return the first node at which the two models part."""
    return next((row for row in rows if row.parts), None)
