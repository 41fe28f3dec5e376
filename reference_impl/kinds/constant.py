"""Constants that functions capture: values of Const nodes of the main graph.

RFC: RES-04
"""

from __future__ import annotations

import tensorflow as tf

from reference_impl.errors import MissingKeyError, under_rule
from reference_impl.format import schema
from reference_impl.functions.load_context import LoadContext
from reference_impl.graph import node_kinds
from reference_impl.kinds.kind import Export, Kind, SavedNode


class ConstantKind(Kind):
    """Eager tensors. The object names a Const node of the main graph, which holds the value."""

    message = node_kinds.CONSTANT

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> tf.Tensor:
        """Return the tensor of a `constant` node.

        Strings are placed on the CPU, the only device that supports them.

        Raises MissingKeyError if there is no such Const node, and the errors of
        `LoadContext.tensor`.
        """
        operation = node.constant.operation
        const = load.graph_nodes.get(operation)
        if const is None or const.op != "Const":
            reason = "the graph has no such Const node"
            raise MissingKeyError(reason, node=operation, rule="SM-KIND-5")
        proto = const.attr["value"].tensor
        device = tf.device("CPU" if proto.dtype == schema.DT_STRING else None)
        with device, under_rule("SM-KIND-5"):
            return load.tensor(proto, operation)

    def matches(self, obj: object) -> bool:
        """Return whether an object is an eager tensor, whose numbers a file can hold.

        Not by `tf.is_tensor`: it is true of whatever can stand for a tensor (a
        `tfp.util.TransformedVariable`, any class with `is_tensor_like`), which may be an object
        with variables of its own.
        """
        return isinstance(obj, tf.Tensor) and hasattr(obj, "numpy")

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write the name of the Const node."""
        out.constant.operation = export.constant_operation(node.number)


KIND = ConstantKind()
