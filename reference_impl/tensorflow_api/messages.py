"""Convert protobuf messages between TensorFlow's classes and those of
`reference_impl.format.schema`, by their bytes.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from reference_impl.format import schema


def to_tf(message: Message, kind: Any) -> Any:
    """Return one of our messages as a message of TensorFlow's class `kind`."""
    return kind.FromString(message.SerializeToString())


def from_tf(message: Message, kind: Any) -> Any:
    """Return a message of TensorFlow as one of our class `kind`."""
    return schema.parse(kind, message.SerializeToString(deterministic=True))
