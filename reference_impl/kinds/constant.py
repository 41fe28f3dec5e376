"""Constants that functions capture: values of Const nodes of the main graph.

RFC: RES-04
"""

from __future__ import annotations

import tensorflow as tf

from reference_impl.errors import MissingKeyError
from reference_impl.format import schema
from reference_impl.functions.load_context import Load


def read(load: Load, number: int, saved: schema.SavedObject) -> tf.Tensor:
    """Return the tensor of a `constant` node.

    Strings are placed on the CPU, the only device that supports them.

    Raises MissingKeyError if there is no such Const node, and the errors of `Load.tensor`.
    """
    operation = saved.constant.operation
    node = load.graph_nodes.get(operation)
    if node is None or node.op != "Const":
        raise MissingKeyError("the graph has no such Const node", node=operation)
    proto = node.attr["value"].tensor
    with tf.device("CPU" if proto.dtype == schema.DT_STRING else None):
        return load.tensor(proto, operation)


def write(out: schema.SavedObject, operation: str) -> None:
    """Write a constant into its SavedObject.

    The value is in the Const node `operation` of the main graph.
    """
    out.constant.operation = operation
