"""Constants that functions capture: values of Const nodes of the main graph.

RFC: RES-04
"""

from __future__ import annotations

import math
from typing import Any, Optional

import tensorflow as tf

from reference_impl.errors import LimitError, MalformedError, MissingKeyError
from reference_impl.format import limits
from reference_impl.format.values import dtypes
from reference_impl.kinds import specs
from reference_impl.kinds.load import Load

_STRING = 24  # bytes of an empty string in a tensor


def read(load: Load, number: int, saved: Any) -> tf.Tensor:
    """Return the tensor of a `constant` node. Strings are placed on the CPU, the only device that holds them.

    Raises:
      MissingKeyError, MalformedError: there is no such Const node, or its value is damaged.
      LimitError: a few bytes promise an enormous tensor, or many small nodes do together.
    """
    operation = saved.constant.operation
    node = load.graph_nodes.get(operation)
    if node is None or node.op != "Const":
        raise MissingKeyError("the graph has no such Const node", node=operation)
    proto = node.attr["value"].tensor
    dtype = dtypes.by_number(proto.dtype)
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if any(size < 0 for size in sizes) or proto.tensor_shape.unknown_rank or len(sizes) > limits.RANK:
        raise MalformedError("the shape of a constant is unknown, negative or has too many dimensions", node=operation)
    load.grown += max(0, _grows(proto, math.prod(sizes), dtype.itemsize))
    if load.grown > limits.FILLED_BYTES:
        reason = f"constants take {limits.FILLED_BYTES} bytes more than are stored, this one and those before"
        raise LimitError(reason, node=operation, limit="FILLED_BYTES")
    with tf.device("CPU" if dtype.name == "string" else None):
        try:
            return specs.tensor_to_tf(proto)
        except tf.errors.InvalidArgumentError as error:
            raise MalformedError(f"the value of a constant is damaged: {error.message}", node=operation) from None


def _grows(proto: Any, count: int, itemsize: Optional[int]) -> int:
    """Return by how many bytes a tensor is larger than its message. Strings that are listed take about as much in the file."""
    if itemsize is not None:
        return count * itemsize - int(proto.ByteSize())
    return 0 if proto.tensor_content else (count - len(proto.string_val)) * _STRING


def write(out: Any, operation: str) -> None:
    """Write a constant into its SavedObject. The value is in the Const node `operation` of the main graph."""
    out.constant.operation = operation
