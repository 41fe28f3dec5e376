"""The bytes of a message with its maps in the order of their keys, as C++ serialises them
deterministically.

Python's implementation has a different order: numbers descend, and a key follows the keys that
start with it. Hashes that other programs compute of a file (fingerprint.pb) need the common order.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from reference_impl.format import errors, limits, schema
from reference_impl.format.schema._examine import holds_maps
from reference_impl.format.wire import bytes_field, write_varint

# Attributes of function references in an AttrValue are not sorted: hardly any has two, and a graph
# has very many values.
_LEAVES = ("tensorflow.AttrValue",)
_SHORT = 1 << 12  # bytes of a structured value that is kept for the next equal one


def ordered_bytes(message: Message) -> bytes:
    """Return the bytes of a message; those of `schema.serialize` if fields that this schema does
    not know would be lost.

    Raises LimitError: the message is larger than protobuf can write.
    """
    data = _reordered(message)
    if data is None:
        return schema.serialize(message)
    if len(data) > limits.SAVED_MODEL_BYTES:
        reason = f"{message.DESCRIPTOR.full_name} of {len(data):,} bytes"
        raise errors.LimitError(reason, limit="SAVED_MODEL_BYTES")
    return data if len(data) == message.ByteSize() else schema.serialize(message)


def _reordered(message: Message) -> Optional[bytes]:
    """Return the bytes of a message; None if those of `schema.serialize` are in order already, as
    those of most nodes are.
    """
    if isinstance(message, schema.StructuredValue) and (size := message.ByteSize()) <= _SHORT:
        return _reordered_structure(schema.serialize(message)) if size else None
    return _reordered_fields(message)


@functools.lru_cache(maxsize=1 << 12)
def _reordered_structure(data: bytes) -> Optional[bytes]:
    """Return what `_reordered` returns for the StructuredValue with these bytes.

    Most functions of a model have one of a few signatures.
    """
    message = schema.StructuredValue()
    message.ParseFromString(data)
    return _reordered_fields(message)


def _reordered_fields(message: Message) -> Optional[bytes]:
    """Return the bytes of a message, as `_reordered` does, from those of its fields."""
    found = {}
    for place in _places(message.DESCRIPTOR):
        if place.repeated or message.HasField(place.name):
            pieces = _pieces(place, getattr(message, place.name))
            if pieces is not None:
                found[place.number] = pieces
    if not found:
        return None
    pieces = []
    for (
        field,
        value,
    ) in message.ListFields():  # in the order of their numbers, in which they are written
        pieces += found.get(field.number) or [schema.serialize(_only(message, field, value))]
    return b"".join(pieces)


def _pieces(place: _Place, value: Any) -> Optional[list[bytes]]:
    """Return the bytes of a field; None if those of `schema.serialize` are in order already."""
    if place.value_type is not None:
        return _entries(place, value)
    items = value if place.repeated else [value]
    found = [_reordered(item) for item in items]
    if found.count(None) == len(found):
        return None
    return [
        bytes_field(place.number, schema.serialize(item) if data is None else data)
        for item, data in zip(items, found)
    ]


def _entries(place: _Place, values: Any) -> Optional[list[bytes]]:
    """Return the entries of a map, sorted. Keys are strings, or integers that are not negative."""
    text, keys = place.text, tuple(values)
    messages = place.value_type == FieldDescriptor.TYPE_MESSAGE
    settled = _is_ordered(keys) if text else len(keys) < 2
    if settled and not place.nested:
        return None
    found = {key: _reordered(values[key]) for key in keys} if messages else {}
    if settled and not any(found.values()):
        return None
    entries = []
    for key in sorted(keys, key=str.encode if text else None):
        start = bytes_field(1, key.encode()) if text else b"\x08" + write_varint(key)
        if messages:
            data = found.get(key)
            value = bytes_field(2, schema.serialize(values[key]) if data is None else data)
        elif place.value_type == FieldDescriptor.TYPE_STRING:
            value = bytes_field(2, values[key].encode())
        else:
            value = b"\x10" + write_varint(values[key])
        entries.append(bytes_field(place.number, start + value))
    return entries


def _only(message: Message, field: FieldDescriptor, value: object) -> Any:
    """Return a message with one of the fields."""
    out = type(message)()
    if schema.is_repeated(field):
        getattr(out, field.name).MergeFrom(value)
    elif field.message_type is not None:
        getattr(out, field.name).CopyFrom(value)
    else:
        setattr(out, field.name, value)
    return out


@functools.lru_cache(maxsize=1 << 12)
def _is_ordered(keys: tuple[str, ...]) -> bool:
    """Return whether Python writes these keys in the order of C++, because no key is a prefix of
    another.
    """
    found = sorted(keys)
    return not any(second.startswith(first) for first, second in zip(found, found[1:]))


class _Place(NamedTuple):
    """A field that is a map or holds maps."""

    number: int
    name: str
    repeated: bool
    value_type: Optional[int] = None  # of the values of a map; None for any other field
    text: bool = False  # whether the keys of the map are strings
    nested: bool = False  # whether the values of the map hold maps (see `_LEAVES`)


@functools.cache
def _places(kind: Descriptor) -> tuple[_Place, ...]:
    """Return the fields that are or hold maps.

    Maps of fixed-width numbers (in debug info) stay as they are.
    """
    found = []
    for field in kind.fields:
        if field.message_type and holds_maps(field.message_type, _LEAVES):
            place = _Place(field.number, field.name, schema.is_repeated(field))
            if field.message_type.GetOptions().map_entry:
                key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
                nested = value.message_type is not None and holds_maps(value.message_type, _LEAVES)
                place = place._replace(
                    value_type=value.type,
                    text=key.type == FieldDescriptor.TYPE_STRING,
                    nested=nested,
                )
            found.append(place)
    return tuple(found)
