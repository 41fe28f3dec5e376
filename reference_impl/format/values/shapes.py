"""Shapes of tensors as tuples, and as text: ``[?,3]``."""

from __future__ import annotations

from typing import Optional

from reference_impl.format import schema

Shape = Optional[tuple[Optional[int], ...]]


def shape_of(proto: schema.TensorShapeProto) -> Shape:
    """A shape as a tuple; None for unknown rank, None in place of an unknown size."""
    if proto.unknown_rank:
        return None
    return tuple([dim.size if dim.size >= 0 else None for dim in proto.dim])


def shape_text(shape: Shape) -> str:
    """``[?,3]``, ``[]``, or ``[...]`` for unknown rank."""
    if shape is None:
        return "[...]"
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"
