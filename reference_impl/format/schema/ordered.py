"""The bytes of a message with its maps in the order of their keys, as C++ serialises them deterministically.

Python's implementation has a different order: numbers descend, and a key follows the keys that start with it. Hashes that other
programs compute of a file (fingerprint.pb) need the common order.
"""

from __future__ import annotations

import functools
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.schema._examine import holds_maps
from reference_impl.format.wire import bytes_field, write_varint

# Attributes of function references in an AttrValue are not sorted: hardly any has two, and a graph has very many values.
_LEAVES = ("tensorflow.AttrValue",)


def ordered_bytes(message: Any) -> bytes:
    """Return the bytes of a message; those of `schema.serialize` if it holds fields that this schema does not know.

    Raises:
      LimitError: the message is larger than protobuf can write.
    """
    data = _bytes(message)
    if len(data) > limits.SAVED_MODEL_BYTES:
        reason = f"{message.DESCRIPTOR.full_name} of {len(data):,} bytes"
        raise errors.LimitError(reason, limit="SAVED_MODEL_BYTES")
    return data if len(data) == message.ByteSize() else schema.serialize(message)


def _bytes(message: Any) -> bytes:
    kind = message.DESCRIPTOR
    fields = _fields_with_maps(kind)
    if not fields or (kind.full_name == "tensorflow.NodeDef" and _is_ordered(tuple(message.attr))):
        return schema.serialize(message)
    pieces = []
    for field, value in message.ListFields():  # in the order of their numbers, in which they are written
        if field.number not in fields:
            pieces.append(schema.serialize(_only(message, field, value)))
        elif field.message_type.GetOptions().map_entry:
            pieces += [bytes_field(field.number, entry) for entry in _entries(field.message_type, value)]
        else:
            items = value if schema.is_repeated(field) else [value]
            pieces += [bytes_field(field.number, _bytes(item)) for item in items]
    return b"".join(pieces)


def _entries(kind: Descriptor, values: Any) -> list[bytes]:
    """Return the entries of a map, sorted. Keys are strings, or integers that are not negative."""
    text = kind.fields_by_name["key"].type == FieldDescriptor.TYPE_STRING
    value_type = kind.fields_by_name["value"].type
    entries = []
    for key in sorted(values, key=str.encode if text else None):
        start = bytes_field(1, key.encode()) if text else b"\x08" + write_varint(key)
        if value_type == FieldDescriptor.TYPE_MESSAGE:
            value = bytes_field(2, _bytes(values[key]))
        elif value_type == FieldDescriptor.TYPE_STRING:
            value = bytes_field(2, values[key].encode())
        else:
            value = b"\x10" + write_varint(values[key])
        entries.append(start + value)
    return entries


def _only(message: Any, field: FieldDescriptor, value: Any) -> Any:
    """Return a message with one of the fields."""
    out = type(message)()
    if schema.is_repeated(field):
        getattr(out, field.name).MergeFrom(value)
    elif field.message_type is not None:
        getattr(out, field.name).CopyFrom(value)
    else:
        setattr(out, field.name, value)
    return out


@functools.cache
def _is_ordered(keys: tuple[str, ...]) -> bool:
    """Return whether Python writes these keys in the order of C++, because no key is a prefix of another."""
    found = sorted(keys)
    return not any(second.startswith(first) for first, second in zip(found, found[1:]))


@functools.cache
def _fields_with_maps(kind: Descriptor) -> frozenset[int]:
    """Return the numbers of the fields that are or hold maps. Maps of fixed-width numbers (in debug info) stay as they are."""
    return frozenset(field.number for field in kind.fields if field.message_type and holds_maps(field.message_type, _LEAVES))
