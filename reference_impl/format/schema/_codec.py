"""Convert bytes and text to messages and back, with our own errors."""

from __future__ import annotations

import os
from typing import Optional, TypeVar, Union, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError, EncodeError, Message

from reference_impl.format import errors, limits
from reference_impl.format.schema import _count, _examine, _pool

M = TypeVar("M", bound=Message)

File = Optional[Union[str, "os.PathLike[str]"]]


def parse(cls: type[M], data: bytes, file: File = None, node: Optional[str] = None) -> M:
    """Parse the bytes of exactly one message.

    Errors name `file` and `node`, where the bytes come from, and the path inside.

    Raises:
      TruncatedError, MalformedError, LimitError (nesting), DuplicateKeyError (a map holds a key
        twice; not noticed by the C++ implementation of protobuf 3.20, which keeps entries as they
        came). An entry of a map with anything but a key and a value is malformed: readers differ in
        what they make of it.
    """
    # A message takes two bytes at least, so a small file need not be counted.
    uncounted = 2 * min(limits.MESSAGES, limits.DENSE_MESSAGES)
    if len(data) > uncounted and _count.too_many(data, cast(Descriptor, cls.DESCRIPTOR)):
        reason = f"more than {_count.most(len(data))} messages"
        raise errors.LimitError(reason, file=file, node=node, limit="MESSAGES", rule="SM-CONF-4")
    message = cls()
    failure: Optional[Exception] = None
    try:
        # Beside errors, protobuf 3.20 only warns of a field number 0 and drops what follows it;
        # where warnings are errors, its C++ implementation turns this one into a SystemError.
        message.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError, RecursionError, RuntimeWarning, SystemError) as error:
        failure = error
    # A map that was given one key twice has dropped a value and become smaller. Other encodings
    # that are no longer what they were (an explicit zero, a list not packed) are legal and rare
    # enough to be read a second time. So are unknown fields: an entry of a map that has one is left
    # out of the map and written again in any order by protobuf from 4 on.
    if failure is None and message.ByteSize() == len(data):
        # Python's own implementation keeps such an entry in the map, smaller; and does not count
        # what it discards.
        if (
            not _examine.holds_maps(cast(Descriptor, cls.DESCRIPTOR))
            or api_implementation.Type() == "python"
        ):
            return message
        message.DiscardUnknownFields()
        if message.ByteSize() == len(data):
            return message
        message = cls()
        message.ParseFromString(data)
    fault = _examine.examine(data, cast(Descriptor, cls.DESCRIPTOR), keys_only=failure is None)
    if fault is None:
        if failure is None:
            return message
        fault = errors.MalformedError(f"not a {cls.DESCRIPTOR.full_name}: {failure}")
    fault.file = None if file is None else os.fspath(file)
    fault.node = ": ".join(part for part in (node, fault.node) if part) or None
    raise fault from failure


def parse_text(cls: type[M], text: Union[str, bytes], file: File = None) -> M:
    """Parse text format. Types inside an Any are resolved in this schema's pool.

    Raises MalformedError with line and column, LimitError (nesting), DuplicateKeyError.
    """
    from google.protobuf import text_format

    # Without maps, an entry given twice remains two entries, which `parse` then finds.
    schema = _pool.schema(_pool.without_maps)
    message = schema.message_class(schema.pool.FindMessageTypeByName(cls.DESCRIPTOR.full_name))()
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        text_format.Parse(text, message, descriptor_pool=schema.pool)
        data = message.SerializeToString()
    except (RecursionError, EncodeError) as error:
        reason = f"messages are nested deeper than {limits.MESSAGE_DEPTH}"
        raise errors.LimitError(
            reason, file=file, limit="MESSAGE_DEPTH", rule="SM-DIR-12"
        ) from error
    # On odd input the parser passes on errors of its parts.
    except (text_format.ParseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise errors.MalformedError(
            f"not a {cls.DESCRIPTOR.full_name} in text format: {error}", file=file
        ) from error
    return parse(cls, data, file)


def serialize(message: Message) -> bytes:
    """Return the bytes of a message, equal for equal messages (maps sorted by key) in one release
    of protobuf.
    """
    try:
        return message.SerializeToString(deterministic=True)
    except (EncodeError, RecursionError, ValueError) as error:
        raise errors.LimitError(
            f"{message.DESCRIPTOR.full_name} cannot be serialised: {error}",
            limit="SAVED_MODEL_BYTES",
        ) from error


def copy_of(message: M) -> M:
    """Return a copy of a message."""
    out = type(message)()
    out.CopyFrom(message)
    return out


def to_text(message: Message) -> str:
    """Return a message in text format, with the types inside an Any expanded where this schema
    knows them.
    """
    from google.protobuf import text_format

    return text_format.MessageToString(message, descriptor_pool=_pool.schema().pool)
