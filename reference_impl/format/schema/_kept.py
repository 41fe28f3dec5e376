"""Find out whether a parsed message holds everything that is in its bytes.

Protobuf keeps the last of two map entries with one key, and says nothing. It does not count the
entries of a file either, so the message is compared with its bytes.
"""

from __future__ import annotations

import enum

from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError, EncodeError, Message

from reference_impl.format.schema import _pool

# Python's own implementation keeps an entry with an unknown field, without the field; and its sizes
# still count the fields that it has discarded.
_DISCARDS = api_implementation.Type() != "python"


class Kept(enum.Enum):
    """The part of its bytes that a message holds.

    ALL: everything, and all of it is known to the schema. BUT_UNKNOWN: everything but fields that
    the schema does not know, none of them in an entry of a map. UNSETTLED: an entry of a map may be
    missing. Only reading the bytes field by field can tell.
    """

    ALL = enum.auto()
    BUT_UNKNOWN = enum.auto()
    UNSETTLED = enum.auto()


def kept(message: Message, data: bytes) -> Kept:
    """Return what a message holds that was just parsed from ``data``.

    Discards the unknown fields of the message. An entry of a map that has an unknown field is one
    of them: it is not in the map.
    """
    try:
        if _DISCARDS:
            message.DiscardUnknownFields()
        written = message.SerializeToString(deterministic=True)
        if written == data:  # a file of TensorFlow 2.12 or later, whose maps are sorted
            return Kept.ALL
        size = len(written)
        del written
        return _compare(size, data, message.DESCRIPTOR.full_name)
    except (EncodeError, RecursionError, ValueError):
        return Kept.UNSETTLED


def _compare(size: int, data: bytes, kind: str) -> Kept:
    """Compare the size of a message with that of a message of the same kind whose maps are lists.

    Both lose the same bytes of an unusual encoding, such as a number with leading zeros, and gain
    the same, such as the length of a list that was not packed. Only the maps differ. The lists keep
    all entries and their unknown fields. A map writes the key and the value also of an entry that
    had none, but the lists cannot be written then. So the sizes are equal only if every entry is in
    its map. Explicit zeros are kept in the lists alone, and also lead to `Kept.UNSETTLED`.

    Raises EncodeError: an entry of a map has no key or no value.
    """
    schema = _pool.schema(_pool.whole_entries)
    lists = schema.message_class(schema.pool.FindMessageTypeByName(kind))()
    try:
        lists.ParseFromString(data)
    except (DecodeError, RuntimeWarning, SystemError):
        return Kept.UNSETTLED
    if len(lists.SerializeToString()) == size:
        return Kept.ALL
    if not _DISCARDS:
        return Kept.UNSETTLED
    lists.DiscardUnknownFields()
    return Kept.BUT_UNKNOWN if len(lists.SerializeToString()) == size else Kept.UNSETTLED
