"""Constants that functions capture: the value of a Const node of the main graph (RES-04)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from reference_impl import specs
from reference_impl.format import dtypes, limits
from reference_impl.format.errors import LimitError, MalformedError, MissingKeyError


def make(operation: str, nodes: Mapping[str, Any]) -> tf.Tensor:
    """The value of the node `operation`. Strings are placed on the CPU, the only device that holds them.

    Raises:
      MissingKeyError, MalformedError: there is no such Const node, or its value is damaged.
      LimitError: a few bytes that promise an enormous tensor.
    """
    node = nodes.get(operation)
    if node is None or node.op != "Const":
        raise MissingKeyError("the graph has no such Const node", node=operation)
    proto = node.attr["value"].tensor
    dtype = dtypes.by_number(proto.dtype)
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if any(size < 0 for size in sizes) or proto.tensor_shape.unknown_rank:
        raise MalformedError("the shape of a constant is unknown or negative", node=operation)
    if math.prod(sizes) * (dtype.itemsize or 64) > limits.TENSOR_BYTES:
        raise LimitError(f"a constant of shape {sizes}", node=operation, limit="TENSOR_BYTES")
    with tf.device("CPU" if dtype.name == "string" else None):
        try:
            return specs.tensor_to_tf(proto)
        except tf.errors.InvalidArgumentError as error:
            raise MalformedError(f"the value of a constant is damaged: {error.message}", node=operation) from None
