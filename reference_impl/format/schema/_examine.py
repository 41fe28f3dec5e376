"""Read a serialised message field by field, to report what protobuf does not: positions of errors,
and duplicate map keys.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Optional

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from reference_impl.format import errors, limits
from reference_impl.format.wire import (
    BYTES,
    END_GROUP,
    FIXED32,
    FIXED64,
    GROUP,
    VARINT,
    WireError,
    fields,
    read_varint,
)

_FIXED_WIDTH = {
    **dict.fromkeys(
        (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64),
        8,
    ),
    **dict.fromkeys(
        (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32), 4
    ),
}
_PATH_ENDS = 8  # steps shown at each end of a longer path

# Wider numbers are cut to 32 bits when they are read.
_32_BITS = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_ENUM)

Field = tuple[int, int, Any, int]  # see `wire.fields`


@functools.cache
def _is_entry(descriptor: Descriptor) -> bool:
    """Return whether this is the type of an entry of a map."""
    return bool(descriptor.GetOptions().map_entry)


@functools.cache
def holds_maps(descriptor: Descriptor, leaves: tuple[str, ...] = ()) -> bool:
    """Return whether messages of this type hold a map, at any depth, or are entries of one.

    Types in `leaves` count as empty.
    """
    seen, pending = (
        {descriptor.full_name, *leaves},
        [descriptor] if descriptor.full_name not in leaves else [],
    )
    while pending:
        found = pending.pop()
        if _is_entry(found):
            return True
        inner = [field.message_type for field in found.fields if field.message_type is not None]
        pending += [kind for kind in inner if kind.full_name not in seen]
        seen.update(kind.full_name for kind in inner)
    return False


def _wire_type(field: FieldDescriptor) -> int:
    """Return how a single value of a field is written."""
    if field.message_type is not None or field.type in (
        FieldDescriptor.TYPE_STRING,
        FieldDescriptor.TYPE_BYTES,
    ):
        return BYTES
    return {8: FIXED64, 4: FIXED32}.get(_FIXED_WIDTH.get(field.type, 0), VARINT)


class _Enough(Exception):
    """As many fields were read as a message may take."""


def examine(
    data: bytes, descriptor: Descriptor, *, keys_only: bool
) -> Optional[errors.SavedModelError]:
    """Return the first error in a serialised message; None if there is none.

    The `node` of the error is the path to the place; its `file` is not set yet. With `keys_only`,
    only the maps are examined (the message is known to parse), and more than `limits.WIRE_FIELDS`
    fields are an error. Without it, the fields after those are not examined.
    """
    reader = _Reader(data, keys_only)
    error: errors.SavedModelError
    try:
        reader.message(descriptor, fields(reader.data), _Keys())
        return None
    except _Enough:
        if not keys_only:
            return None
        reason = f"more than {limits.WIRE_FIELDS} fields to search for duplicate keys"
        return errors.LimitError(reason, limit="WIRE_FIELDS", rule="SM-DIR-11")
    except WireError as found:
        reader.position = found.position
        error = (errors.TruncatedError if found.truncated else errors.MalformedError)(str(found))
        error.node = "" if found.number is None else _name(reader.kind, found.number)
    except (
        errors.SavedModelError
    ) as found:  # its node is the last step of the path, if there is one
        error = found
    labels = [*reader.path, *([error.node] if error.node else [])]
    if len(labels) > 2 * _PATH_ENDS:
        labels[_PATH_ENDS:-_PATH_ENDS] = ["…"]
    error.node, error.reason = ".".join(labels), f"{error.reason} (at byte {reader.position})"
    return error


def _name(kind: Optional[Descriptor], number: int) -> str:
    """Return the name of a field, ``#7`` without one."""
    return (
        kind.fields_by_number[number].name
        if kind is not None and number in kind.fields_by_number
        else f"#{number}"
    )


class _Keys:
    """The keys in the maps of a message so far: field and key. A message that is written in several
    parts is one message, so the parts share them.
    """

    def __init__(self) -> None:
        self.seen: set[tuple[int, Any]] = set()
        self._parts: dict[int, _Keys] = {}

    def of(self, field: FieldDescriptor) -> _Keys:
        """Return the keys of the next message in a field."""
        return _Keys() if is_repeated(field) else self._parts.setdefault(field.number, _Keys())


class _Reader:
    """Reads one message. After an error, the attributes tell where it is."""

    def __init__(self, data: bytes, keys_only: bool) -> None:
        self.data = memoryview(data)
        self.position = 0  # behind the last field
        self.path: list[
            str
        ] = []  # the fields that lead to the innermost message, with their indices
        self.kind: Optional[Descriptor] = (
            None  # of the innermost message; None for a group, whose fields are unknown
        )
        self._keys_only = keys_only
        self._left = limits.WIRE_FIELDS

    def message(
        self, kind: Optional[Descriptor], found: Iterator[Field], keys: _Keys, group: int = 0
    ) -> Any:
        """Read the fields of a message, or those up to the end of the group with a number; return
        the key of a map entry.
        """
        outer, self.kind = self.kind, kind
        counts: dict[int, int] = {}  # how often each field with messages has occurred
        key: Any = None
        for number, wire, content, self.position in found:
            self._left -= 1
            if self._left < 0:
                raise _Enough
            field, label = (
                None if kind is None else kind.fields_by_number.get(number),
                _name(kind, number),
            )
            if wire == END_GROUP:
                if number != group:
                    raise errors.MalformedError("a group ends that did not start", node=label)
                self.kind = outer
                return None
            value = self._value(field, wire, content, label)
            if kind is not None and _is_entry(kind):
                if field is None or wire != _wire_type(field):
                    raise errors.MalformedError(
                        "an entry of a map has a field that is neither its key nor its value",
                        node=label,
                    )
                key = value if number == 1 else key
            inner = None if field is None or wire != BYTES else field.message_type
            if wire == GROUP:
                self._enter(label, None, found, keys, number)
            elif (
                field is not None
                and inner is not None
                and (holds_maps(inner) or not self._keys_only)
            ):
                counts[number] = index = counts.get(number, -1) + 1
                end, self.position = self.position, self.position - len(content)
                step = f"{label}[{index}]" if is_repeated(field) else label
                inner_fields = fields(self.data, self.position, end)
                inner_key = self._enter(step, inner, inner_fields, keys.of(field))
                if _is_entry(inner):
                    inner_key = (
                        inner.fields_by_number[1].default_value if inner_key is None else inner_key
                    )
                    if (number, inner_key) in keys.seen:
                        raise errors.DuplicateKeyError(
                            f"the map holds the key {inner_key!r} twice",
                            node=label,
                            rule="SM-DIR-11",
                        )
                    keys.seen.add((number, inner_key))
        if group:
            raise errors.TruncatedError("a group has no end")
        self.kind = outer
        return key

    def _enter(
        self,
        step: str,
        kind: Optional[Descriptor],
        found: Iterator[Field],
        keys: _Keys,
        group: int = 0,
    ) -> Any:
        if len(self.path) >= limits.MESSAGE_DEPTH:
            reason = f"messages are nested deeper than {limits.MESSAGE_DEPTH}"
            raise errors.LimitError(reason, limit="MESSAGE_DEPTH", rule="SM-DIR-12")
        self.path.append(step)
        key = self.message(kind, found, keys, group)
        self.path.pop()
        return key

    def _value(self, field: Optional[FieldDescriptor], wire: int, content: Any, label: str) -> Any:
        """Check and return a number or a string; check a packed list.

        None for any other content.
        """
        if wire in (FIXED64, FIXED32):
            return int.from_bytes(content, "little")
        if wire == VARINT and field is not None and field.type == FieldDescriptor.TYPE_BOOL:
            return bool(content)
        if wire == VARINT and field is not None and field.type in _32_BITS:
            return content & 0xFFFFFFFF
        if wire != BYTES:
            return content
        if (
            field is None
            or field.message_type is not None
            or field.type == FieldDescriptor.TYPE_BYTES
        ):
            return None
        if field.type == FieldDescriptor.TYPE_STRING:
            try:
                return str(content, "utf-8")
            except UnicodeDecodeError as error:
                raise errors.MalformedError(
                    f"a string is not UTF-8: {error.reason}", node=label
                ) from error
        if not self._keys_only:
            self._packed(field, len(content), label)
        return None

    def _packed(self, field: FieldDescriptor, length: int, label: str) -> None:
        width = _FIXED_WIDTH.get(field.type)
        if width:
            if length % width:
                raise errors.MalformedError(
                    f"{length} bytes are not a list of {width}-byte values", node=label
                )
            return
        end, self.position = self.position, self.position - length
        try:
            while self.position < end:
                _, self.position = read_varint(self.data, self.position, end)
        except ValueError as error:
            raise errors.MalformedError(str(error), node=label) from error


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a field is a list or a map; protobuf 7 has dropped the label that used to
    tell.
    """
    known: Optional[bool] = getattr(field, "is_repeated", None)
    if known is None:
        label: int = getattr(field, "label")  # noqa: B009  unknown to the stubs of protobuf 7
        return label == FieldDescriptor.LABEL_REPEATED
    return known
