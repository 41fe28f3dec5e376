"""Tensors and operations that a caller of `prune` names, in the terms of a program.

RFC: V1-01
"""

from __future__ import annotations

from collections.abc import Sequence

from reference_impl import errors
from reference_impl.graph.edges import Edge, parse_input
from reference_impl.v1.reading.extract import Feed, placeholder_shape
from reference_impl.v1.reading.program import Program


def feeds_of(program: Program, feeds: Sequence[tuple[str, str]]) -> list[Feed]:
    """Return the feeds of :meth:`Program.function` for pairs of argument name and tensor name."""
    out = []
    for name, tensor in feeds:
        ref, dtype = tensor_of(program, tensor)
        out.append(Feed(name, ref, dtype, placeholder_shape(program.graph, ref)))
    return out


def tensor_of(program: Program, name: str) -> tuple[Edge, int]:
    """Return a tensor of the graph and its DataType, for a name that a caller gives.

    Raises UnknownTensorError.
    """
    ref = parse_input(name)
    if ":" in ref.source:
        reason = (
            f"The name {name!r} is not a valid name of a tensor, which is '<operation>:<number of"
            " the output>'"
        )
        raise errors.UnknownTensorError(reason, file=program.file)
    reason = (
        f"The name {name!r} refers to a Tensor which does not exist. The operation, {ref.source!r},"
    )
    if ref.source not in program.graph:
        raise errors.UnknownTensorError(f"{reason} does not exist in the graph", file=program.file)
    found = program.ops.output(program.graph.nodes[ref.source], ref)
    if found is None:
        count = len(program.ops.outputs(program.graph.nodes[ref.source]))
        raise errors.UnknownTensorError(
            f"{reason} exists but only has {count} outputs", file=program.file
        )
    return ref, found[2]


def check_operations(program: Program, names: Sequence[str]) -> None:
    """Raise UnknownTensorError if the graph has no operation of a name that a caller gives."""
    for name in names:
        if name not in program.graph:
            raise errors.UnknownTensorError(
                f"The name {name!r} refers to an Operation not in the graph", file=program.file
            )
