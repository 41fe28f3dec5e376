"""Shapes of tensors as tuples, and as text: ``[?,3]``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

from reference_impl.format import limits, schema
from reference_impl.format.errors import ShapeError

Shape = Optional[tuple[Optional[int], ...]]


def shape_of(proto: schema.TensorShapeProto) -> Shape:
    """Return a shape as a tuple: None for an unknown rank, None in place of an unknown size."""
    if proto.unknown_rank:
        return None
    return tuple([dim.size if dim.size >= 0 else None for dim in proto.dim])


def shape_proto(sizes: Optional[Iterable[Optional[int]]]) -> schema.TensorShapeProto:
    """Return the message of a shape, the inverse of `shape_of`."""
    out = schema.TensorShapeProto(unknown_rank=sizes is None)
    for size in sizes or ():
        out.dim.add(size=-1 if size is None else size)
    return out


def shape_protos(
    shapes: Iterable[Optional[Iterable[Optional[int]]]],
) -> list[schema.TensorShapeProto]:
    """Return the messages of several shapes."""
    return [shape_proto(sizes) for sizes in shapes]


def has_valid_rank(rank: int, most: Optional[int] = None) -> bool:
    """Return whether TensorFlow can represent a tensor of so many dimensions.

    `most` is `limits.RANK` by default. For example, 254 dimensions are valid, and 255 are not.
    """
    return rank <= (limits.RANK if most is None else most)


def check_rank(rank: int, most: Optional[int] = None) -> None:
    """Refuse a rank that `has_valid_rank` refuses. Raises ShapeError."""
    if not has_valid_rank(rank, most):
        most = limits.RANK if most is None else most
        raise ShapeError(f"a shape has {rank} dimensions, TensorFlow has room for {most}")


def covers(
    general: Optional[Sequence[Optional[int]]], special: Optional[Sequence[Optional[int]]]
) -> bool:
    """Return whether every shape that `special` allows is one that `general` allows."""
    if general is None or special is None:
        return general is None
    return len(general) == len(special) and all(
        size in (None, other) for size, other in zip(general, special)
    )


def may_be_one(one: Shape, other: Shape) -> bool:
    """Return whether two shapes, partly unknown, may describe one tensor."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(
        a == b or a is None or b is None for a, b in zip(one, other)
    )


def shape_text(shape: Shape) -> str:
    """Return ``[?,3]``, ``[]``, or ``[...]`` for an unknown rank."""
    if shape is None:
        return "[...]"
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"
