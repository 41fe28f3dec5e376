"""Read the SignatureDefs of a TF 1.x model, and compare them with the graph.

RFC: V1-01
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.values.shapes import may_be_one, shape_of
from reference_impl.graph.edges import Edge, parse_input
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import OpTable
from reference_impl.graph.signature_tensors import parts_of
from reference_impl.v1.reading.extract import Feed, placeholder_shape
from reference_impl.views.text import spec_text

_SPARSE_PARTS = (
    "indices",
    "values",
    "dense_shape",
)  # the order of a SparseTensor's parts in TensorFlow


@dataclass(frozen=True)
class Output:
    """A result of a signature. Its kind is dense, sparse or composite."""

    key: str
    kind: str
    tensors: tuple[Edge, ...]  # indices, values and shape of a sparse result
    info: Any  # the TensorInfo


@dataclass(frozen=True)
class Signature:
    """A SignatureDef, its inputs sorted by name and its outputs by key.

    `positional` are the names of the inputs in the order of a call without names: the parts of an
    input stay together.
    """

    key: str
    inputs: tuple[Feed, ...]
    outputs: tuple[Output, ...]
    positional: tuple[str, ...]


def read_signature(key: str, definition: schema.SignatureDef) -> Signature:
    """Return the inputs and outputs of a SignatureDef, tensor by tensor."""
    inputs = []
    for name, info in sorted(definition.inputs.items()):
        kind, parts = parts_of(info)
        if kind == "sparse":
            parts = sorted(parts, key=lambda part: _SPARSE_PARTS.index(part[0]))
        for part, tensor, dtype, shape in parts:
            inputs.append(
                Feed(f"{name}_{part}" if part else name, parse_input(tensor), dtype, shape)
            )
    outputs = [read_output(name, info) for name, info in sorted(definition.outputs.items())]
    positional = tuple(item.name for item in inputs)
    return Signature(
        key, tuple(sorted(inputs, key=lambda item: item.name)), tuple(outputs), positional
    )


def read_output(key: str, info: schema.TensorInfo) -> Output:
    """Return the result that a TensorInfo describes."""
    kind, parts = parts_of(info)
    tensors = {part: parse_input(tensor) for part, tensor, _, _ in parts}
    order = _SPARSE_PARTS if kind == "sparse" else tensors
    return Output(key, kind, tuple([tensors[part] for part in order]), info)


class GraphCheck:
    """Compares the statements of SignatureDefs about tensors with the graph, which takes
    precedence, as in sessions.
    """

    def __init__(self, graph: Graph, ops: OpTable):
        self._graph, self._ops = graph, ops
        self.false_statements: list[str] = []

    def as_in_graph(self, signature: Signature) -> Signature:
        """Return the signature with the dtypes and shapes that its tensors have in the graph."""
        inputs = []
        for item in signature.inputs:
            kind, shape = self._in_graph(item.tensor, item.dtype % 100)
            if shape is None or may_be_one(shape_of(shape), shape_of(item.shape)):
                shape = item.shape
            self._compare(
                signature.key,
                f"input {item.name!r}",
                item.tensor,
                (item.dtype % 100, item.shape),
                (kind, shape),
            )
            inputs.append(item._replace(dtype=kind, shape=shape))
        for output in signature.outputs:
            for part, tensor, said, shape in parts_of(output.info)[1]:
                ref = parse_input(tensor)
                said %= 100  # a reference leaves a function as its value
                name = f"output {output.key!r}" + (f" ({part})" if part else "")
                kind, _ = self._in_graph(ref, said)
                if said:  # TF 1.x needs none
                    self._compare(signature.key, name, ref, (said, shape), (kind, shape))
        return dataclasses.replace(signature, inputs=tuple(inputs))

    def _in_graph(self, ref: Edge, said: int) -> tuple[int, Any]:
        """Return DataType (``said`` if unknown) and shape (None if unknown) of a tensor of the
        graph.
        """
        try:
            found = self._ops.output(self._graph.nodes[ref.source], ref)
        except (KeyError, errors.SavedModelError):
            return said, None
        return (said if found is None else found[2] % 100), placeholder_shape(self._graph, ref)

    def _compare(
        self, key: str, what: str, ref: Edge, said: tuple[int, Any], found: tuple[int, Any]
    ) -> None:
        if (said[0], shape_of(said[1])) != (found[0], shape_of(found[1])):
            one, other = spec_text(*said), spec_text(*found)
            self.false_statements.append(
                f"signature {key!r}, {what}: the SignatureDef says {one}, the tensor {ref.text!r}"
                f" of the graph is {other}. The SignatureDef is wrong, the graph is followed"
            )
