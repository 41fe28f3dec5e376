"""The signatures of a TF 1.x model: SignatureDefs read, and compared with the graph.

RFC: V1-01
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from reference_impl import errors
from reference_impl.format.values.shapes import Shape, shape_of, shape_proto
from reference_impl.graph.edges import Ref, parse_ref
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import INT64, OpTable
from reference_impl.inspection.text import spec_text
from reference_impl.v1.extract import placeholder_shape

SPARSE_PARTS = ("indices", "values", "dense_shape")


@dataclass(frozen=True)
class Input:
    """An argument of a signature.

    Attributes:
      name: as callers write it.
      key, part: key of the SignatureDef, and which of its tensors the argument is (empty for a dense tensor).
      tensor: of the graph.
      dtype, shape: DataType and TensorShapeProto.
    """

    name: str
    key: str
    part: str
    tensor: Ref
    dtype: int
    shape: Any


@dataclass(frozen=True)
class Output:
    """A result of a signature.

    Attributes:
      key: of the SignatureDef.
      kind: dense, sparse or composite.
      tensors: in order; those of a sparse result are SPARSE_PARTS.
      info: the TensorInfo.
    """

    key: str
    kind: str
    tensors: tuple[Ref, ...]
    info: Any


@dataclass(frozen=True)
class Signature:
    """A SignatureDef, its inputs sorted by name and its outputs by key."""

    key: str
    method_name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]


def read_signature(key: str, definition: Any) -> Signature:
    """Return the inputs and outputs of a SignatureDef, tensor by tensor."""
    inputs = []
    for name, info in sorted(definition.inputs.items()):
        for part, ref, dtype, shape in tensors_of(info):
            inputs.append(Input(f"{name}_{part}" if part else name, name, part, ref, dtype, shape))
    outputs = []
    for name, info in sorted(definition.outputs.items()):
        kind = {"coo_sparse": "sparse", "composite_tensor": "composite"}.get(info.WhichOneof("encoding"), "dense")
        outputs.append(Output(name, kind, tuple(ref for _, ref, _, _ in tensors_of(info)), info))
    return Signature(key, definition.method_name, tuple(sorted(inputs, key=lambda item: item.name)), tuple(outputs))


def tensors_of(info: Any) -> list[tuple[str, Ref, int, Any]]:
    """Return (part, tensor, DataType, TensorShapeProto) for each tensor of a TensorInfo. The part is empty for a dense tensor."""
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        sparse = info.coo_sparse
        names = (sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name)
        rank = None if info.tensor_shape.unknown_rank else len(info.tensor_shape.dim)
        shapes = (shape_proto((None, rank)), shape_proto((None,)), shape_proto((rank,)))
        kinds = (INT64, info.dtype, INT64)
        return [(part, parse_ref(name), kind, shape) for part, name, kind, shape in zip(SPARSE_PARTS, names, kinds, shapes)]
    if encoding == "composite_tensor":
        components = info.composite_tensor.components
        return [(f"component_{i}", parse_ref(item.name), item.dtype, item.tensor_shape) for i, item in enumerate(components)]
    return [("", parse_ref(info.name), info.dtype, info.tensor_shape)]


class GraphCheck:
    """Compares what SignatureDefs say of tensors with the graph, which decides. Sessions ask nothing else.

    Args:
      graph, ops: the graph.

    Attributes:
      false_statements: what SignatureDefs say and the graph contradicts.
    """

    def __init__(self, graph: Graph, ops: OpTable):
        self._graph, self._ops = graph, ops
        self.false_statements: list[str] = []

    def as_in_graph(self, signature: Signature) -> Signature:
        """Return the signature with the dtypes and shapes that its tensors have in the graph."""
        inputs = []
        for item in signature.inputs:
            kind, shape = self._in_graph(item.tensor, item.dtype % 100)
            if shape is None or _may_be_one(shape_of(shape), shape_of(item.shape)):
                shape = item.shape
            self._compare(signature.key, f"input {item.name!r}", item.tensor, (item.dtype % 100, item.shape), (kind, shape))
            inputs.append(dataclasses.replace(item, dtype=kind, shape=shape))
        for output in signature.outputs:
            for part, ref, said, shape in tensors_of(output.info):
                said %= 100  # a reference leaves a function as its value
                name = f"output {output.key!r}" + (f" ({part})" if part else "")
                kind, _ = self._in_graph(ref, said)
                if said:  # TF 1.x needs none
                    self._compare(signature.key, name, ref, (said, shape), (kind, shape))
        return dataclasses.replace(signature, inputs=tuple(inputs))

    def _in_graph(self, ref: Ref, said: int) -> tuple[int, Any]:
        """Return DataType and shape of a tensor of the graph: ``said`` for an unknown DataType, None for an unknown shape."""
        try:
            outputs = self._ops.outputs(self._graph.nodes[ref.node])
        except (KeyError, errors.SavedModelError):
            return said, None
        return (outputs[ref.index][2] % 100 if ref.index < len(outputs) else said), placeholder_shape(self._graph, ref)

    def _compare(self, key: str, what: str, ref: Ref, said: tuple[int, Any], found: tuple[int, Any]) -> None:
        one, other = spec_text(*said), spec_text(*found)
        if one != other:
            self.false_statements.append(
                f"signature {key!r}, {what}: the SignatureDef says {one}, the tensor {ref.text!r} of the graph is {other}. "
                "The SignatureDef is wrong, the graph is followed"
            )


def _may_be_one(one: Shape, other: Shape) -> bool:
    """Return whether two shapes, partly unknown, may be those of one tensor."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(a == b or a is None or b is None for a, b in zip(one, other))
