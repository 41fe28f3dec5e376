"""Constants that functions capture: the value of a Const node of the main graph (RES-04)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Optional

import tensorflow as tf

from reference_impl.errors import LimitError, MalformedError, MissingKeyError
from reference_impl.format import limits
from reference_impl.format.values import dtypes
from reference_impl.kinds import specs

_STRING = 24  # bytes of an empty string in a tensor


class Growth:
    """How much larger the constants of a load are in memory than in the file: many small nodes may each be an enormous tensor."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, operation: str, grows: int) -> None:
        """Count one more. Raises LimitError."""
        self.total += max(0, grows)
        if self.total > limits.FILLED_BYTES:
            reason = f"constants take {limits.FILLED_BYTES} bytes more than are stored, this one and those before"
            raise LimitError(reason, node=operation, limit="FILLED_BYTES")


def make(operation: str, nodes: Mapping[str, Any], growth: Growth) -> tf.Tensor:
    """The value of the node `operation`. Strings are placed on the CPU, the only device that holds them.

    Args:
      operation: the name of a Const node.
      nodes: of the main graph.
      growth: of the constants of this load.

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
    if any(size < 0 for size in sizes) or proto.tensor_shape.unknown_rank or len(sizes) > limits.RANK:
        raise MalformedError("the shape of a constant is unknown, negative or has too many dimensions", node=operation)
    growth.add(operation, _grows(proto, math.prod(sizes), dtype.itemsize))
    with tf.device("CPU" if dtype.name == "string" else None):
        try:
            return specs.tensor_to_tf(proto)
        except tf.errors.InvalidArgumentError as error:
            raise MalformedError(f"the value of a constant is damaged: {error.message}", node=operation) from None


def _grows(proto: Any, count: int, itemsize: Optional[int]) -> int:
    """Bytes that the file does not hold. A string takes more memory than in it, but where they are listed the file grows too."""
    if itemsize is not None:
        return count * itemsize - int(proto.ByteSize())
    return 0 if proto.tensor_content else (count - len(proto.string_val)) * _STRING
