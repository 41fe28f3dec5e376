"""Captured tensors: tensors inside another function that a custom gradient uses.

RFC: FMT-14
"""

from __future__ import annotations

from reference_impl.format import schema
from reference_impl.functions.captured_tensor import CapturedTensor
from reference_impl.functions.load_context import LoadContext
from reference_impl.functions.names import FileName
from reference_impl.graph import node_kinds
from reference_impl.kinds.kind import Export, Kind, SavedNode


class CapturedTensorKind(Kind):
    """Tensors of another function. The object names the function and the tensor inside it."""

    message = node_kinds.CAPTURED_TENSOR

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> CapturedTensor:
        """Make the object of a `captured_tensor` node."""
        captured = node.captured_tensor
        return CapturedTensor(captured.name, FileName(captured.concrete_function))

    def matches(self, obj: object) -> bool:
        return isinstance(obj, CapturedTensor)

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write the names of the tensor and its function."""
        out.captured_tensor.name = node.object.tensor
        out.captured_tensor.concrete_function = node.object.function


KIND = CapturedTensorKind()
