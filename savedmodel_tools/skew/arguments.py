"""The input and output tensors of a node, one by one: the arguments of the op's signature, expanded
by the node's attrs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional

from savedmodel_tools.skew.records import Op


class Tensors(NamedTuple):
    """The input or output tensors of a node, as (type, number of tensors) of each argument.

    An attr may claim any number of tensors, so they are counted and never listed unless somebody
    iterates. A type is written as ``float32``, the name of an attr, or ``Ref(T)``.
    """

    runs: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.runs)

    def kind(self, number: int) -> Optional[str]:
        """Return the type of one tensor; None if there are not so many."""
        for kind, count in self.runs:
            if number < count:
                return kind
            number -= count
        return None

    def kinds(self) -> Iterator[str]:
        """Yield the type of each tensor."""
        for kind, count in self.runs:
            for _ in range(count):
                yield kind


def inputs(op: Op, values: Mapping[str, Any]) -> Optional[Tensors]:
    """Return the input tensors of a node; None when the attrs do not say how many there are.

    ``values`` are the node's attrs as :func:`savedmodel_tools.skew.protos.plain_value` writes them;
    an absent one has its default.
    """
    return _tensors(op, op.signature.partition("->")[0], values)


def outputs(op: Op, values: Mapping[str, Any]) -> Optional[Tensors]:
    """Return the output tensors of a node, as `inputs` does."""
    return _tensors(op, op.signature.partition("->")[2], values)


def dtype(op: Op, tensors: Tensors, number: int, values: Mapping[str, Any]) -> Optional[str]:
    """Return the dtype of one tensor of a node, of a reference the dtype of its variable; None when
    the attrs do not say it.

    Args:
      op: the op of the node.
      tensors: what `inputs` or `outputs` says of the node.
      number: the number of the tensor among these.
      values: the node's attrs, as for `inputs`.
    """
    for kind, count in tensors.runs:
        if number >= count:
            number -= count
            continue
        name = _variable(kind)
        attr = op.attr(name)
        if attr is None:
            return name
        value = values.get(name, attr.default)
        if isinstance(value, list):
            value = value[number] if number < len(value) else None
        return _variable_dtype(value) if isinstance(value, str) else None
    return None


def _variable(kind: str) -> str:
    return kind[len("Ref(") : -1] if is_reference(kind) else kind


def _variable_dtype(name: str) -> str:
    return name.removesuffix("_ref")


def is_reference(kind: str) -> bool:
    """Return whether a type of `inputs` or `outputs` is a reference to a variable of TF 1.x."""
    return kind.startswith("Ref(")


def _tensors(op: Op, side: str, values: Mapping[str, Any]) -> Optional[Tensors]:
    found: list[tuple[str, int]] = []
    for argument in filter(None, side.strip().split(", ")):
        kind = argument.partition(": ")[2]
        inner = _variable(kind)
        number, star, one = inner.partition("*")
        attr = op.attr(number if star else inner)
        if attr is None or not (star or attr.type == "list(type)"):
            found.append((kind, 1))
            continue
        value = values.get(attr.name, attr.default)
        size = value if star else len(value) if isinstance(value, list) else None
        if not isinstance(size, int) or isinstance(size, bool):
            return None
        found.append((one if star else inner, max(0, size)))
    return Tensors(tuple(found))
