"""The border to TensorFlow's protobuf messages, crossed as bytes.

`reference_impl.format.schema` has classes of its own, TensorFlow has its own, and neither may be handed to the other.
"""

from __future__ import annotations

from typing import Any

from reference_impl.format import schema


def to_tf(message: Any, kind: Any) -> Any:
    """One of our messages as a message of TensorFlow's class `kind`."""
    return kind.FromString(message.SerializeToString())


def from_tf(message: Any, kind: Any) -> Any:
    """A message of TensorFlow as one of ours."""
    return schema.parse(kind, message.SerializeToString())
