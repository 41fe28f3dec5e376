"""The input and output tensors of a node, one by one: the arguments of the op's signature, expanded by the node's attrs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from compat_matrix.skew.records import Op


def inputs(op: Op, values: Mapping[str, Any]) -> Optional[list[str]]:
    """Return the type of each input tensor of a node: ``float32``, the name of an attr, ``Ref(T)``.

    None when the attrs do not say how many, or say more than anyone has. ``values`` are the node's attrs as
    :func:`compat_matrix.skew.protos.plain_value` writes them; an absent one has its default.
    """
    return _tensors(op, op.signature.partition("->")[0], values)


def outputs(op: Op, values: Mapping[str, Any]) -> Optional[list[str]]:
    """Return the type of each output tensor of a node, as `inputs` does."""
    return _tensors(op, op.signature.partition("->")[2], values)


def is_reference(kind: str) -> bool:
    """Return whether a type of `inputs` or `outputs` is a reference to a variable of TF 1.x."""
    return kind.startswith("Ref(")


def _tensors(op: Op, side: str, values: Mapping[str, Any]) -> Optional[list[str]]:
    found: list[str] = []
    for argument in filter(None, side.strip().split(", ")):
        kind = argument.partition(": ")[2]
        inner = kind[len("Ref(") : -1] if is_reference(kind) else kind
        number, star, one = inner.partition("*")
        attr = op.attr(number if star else inner)
        if attr is None or not (star or attr.type == "list(type)"):
            found.append(kind)
            continue
        value = values.get(attr.name, attr.default)
        size = value if star else len(value) if isinstance(value, list) else None
        if not isinstance(size, int) or isinstance(size, bool) or (star and size > MAX_TENSORS):
            return None
        found += [one if star else inner] * size
    return found


MAX_TENSORS = 100_000  # of an argument whose attr is a number: a damaged attr may say any. A list of types has its length
