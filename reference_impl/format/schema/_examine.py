"""Read a serialised message field by field, to report what protobuf does not: positions of errors, and duplicate map keys."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Optional

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from reference_impl import errors
from reference_impl.format import limits
from reference_impl.format.wire import BYTES, END_GROUP, FIXED32, FIXED64, GROUP, VARINT, WireError, fields, read_varint

_FIXED_WIDTH = {
    **dict.fromkeys((FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64), 8),
    **dict.fromkeys((FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32), 4),
}
_PATH_ENDS = 8  # steps shown at each end of a longer path


Field = tuple[int, int, Any, int]  # see `wire.fields`


@functools.cache
def _is_entry(descriptor: Descriptor) -> bool:
    """Return whether this is the type of an entry of a map."""
    return bool(descriptor.GetOptions().map_entry)


@functools.cache
def holds_maps(descriptor: Descriptor, leaves: tuple[str, ...] = ()) -> bool:
    """Return whether messages of this type hold a map, at any depth, or are entries of one. Types in `leaves` count as empty."""
    seen, pending = {descriptor.full_name, *leaves}, [descriptor] if descriptor.full_name not in leaves else []
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
    if field.message_type is not None or field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return BYTES
    return {8: FIXED64, 4: FIXED32}.get(_FIXED_WIDTH.get(field.type, 0), VARINT)


class _Frame:
    """A message or a group that is being read.

    Args:
      kind: type of the message; None inside a group, whose fields are unknown.
      left: its fields that have not been read.
      label, number: of the field that holds the message.

    Attributes:
      counts: how often a repeated field has occurred, for the path.
      keys: (map field, key) of the entries read.
      key: the key of a map entry.
    """

    def __init__(self, kind: Optional[Descriptor], left: Iterator[Field], label: str = "", number: int = 0, group: bool = False):
        self.kind, self.left, self.label, self.number, self.group = kind, left, label, number, group
        self.counts: dict[int, int] = {}
        self.keys: set[tuple[int, Any]] = set()
        self.key: Any = None

    def field(self, number: Optional[int]) -> Optional[FieldDescriptor]:
        return self.kind.fields_by_number.get(number) if self.kind is not None and number else None

    def name(self, number: Optional[int]) -> str:
        """Return the name of a field, ``#7`` without one."""
        field = self.field(number)
        return field.name if field else f"#{number}" if number else ""


def examine(data: bytes, descriptor: Descriptor, *, keys_only: bool) -> Optional[errors.SavedModelError]:
    """Return the first error in a serialised message; None if the first `limits.WIRE_FIELDS` fields have no error.

    The `node` of the error is the path to the place; its `file` is not set yet. With `keys_only`, only the maps are examined (the
    message is known to parse).
    """
    reader = _Reader(data, descriptor, keys_only)
    try:
        reader.run()
    except errors.SavedModelError as error:  # its node is the last step of the path, if there is one
        labels = [label for label in (*(frame.label for frame in reader.frames), error.node) if label]
        if len(labels) > 2 * _PATH_ENDS:
            labels[_PATH_ENDS:-_PATH_ENDS] = ["…"]
        error.node, error.reason = ".".join(labels), f"{error.reason} (at byte {reader.position})"
        return error
    return None


class _Reader:
    def __init__(self, data: bytes, descriptor: Descriptor, keys_only: bool) -> None:
        self.data = memoryview(data)
        self.position = 0
        self.frames = [_Frame(descriptor, fields(self.data))]
        self.keys_only = keys_only

    def run(self) -> None:
        for _ in range(limits.WIRE_FIELDS):
            found = self._next()
            while found is None:
                self._leave()
                if not self.frames:
                    return
                found = self._next()
            self._field(*found)

    def _next(self) -> Optional[tuple[int, int, Any]]:
        """Return the next field of the innermost message; None at its end."""
        try:
            found = next(self.frames[-1].left, None)
        except WireError as error:
            self.position = error.position
            kind = errors.TruncatedError if error.truncated else errors.MalformedError
            raise kind(str(error), node=self.frames[-1].name(error.number)) from error
        if found is None:
            return None
        self.position = found[3]
        return found[:3]

    def _leave(self) -> None:
        """Leave the innermost message at its end. The key of a map entry is added to the message that holds the map."""
        frame = self.frames[-1]
        if frame.group:
            raise errors.TruncatedError("a group has no end")
        self.frames.pop()
        if frame.kind is not None and _is_entry(frame.kind) and self.frames:
            key = frame.kind.fields_by_number[1].default_value if frame.key is None else frame.key
            if (frame.number, key) in self.frames[-1].keys:
                label = frame.label.partition("[")[0]
                raise errors.DuplicateKeyError(f"the map holds the key {key!r} twice", node=label)
            self.frames[-1].keys.add((frame.number, key))

    def _field(self, number: int, wire: int, value: Any) -> None:
        frame = self.frames[-1]
        field = frame.field(number)
        label = frame.name(number)
        if wire in (FIXED64, FIXED32):
            value = bytes(value)
        elif wire == BYTES:
            value = self._delimited(field, value, label)
        elif wire == GROUP:
            self._enter(_Frame(None, frame.left, label, number, group=True))
        elif wire == END_GROUP:
            if not frame.group or frame.number != number:
                raise errors.MalformedError("a group ends that did not start", node=label)
            self.frames.pop()
        if frame.kind is not None and _is_entry(frame.kind):
            if field is None or wire != _wire_type(field):
                raise errors.MalformedError("an entry of a map has a field that is neither its key nor its value", node=label)
            if number == 1:
                frame.key = value

    def _delimited(self, field: Optional[FieldDescriptor], content: memoryview, label: str) -> Any:
        """Enter a message, check and return a string, or skip any other field with a length."""
        if field is None:
            return None
        if field.message_type is not None:
            if holds_maps(field.message_type) or not self.keys_only:
                inside = fields(self.data, self.position - len(content), self.position)
                self._enter(_Frame(field.message_type, inside, self._indexed(field), field.number))
                self.position -= len(content)
        elif field.type == FieldDescriptor.TYPE_STRING:
            try:
                return str(content, "utf-8")
            except UnicodeDecodeError as error:
                raise errors.MalformedError(f"a string is not UTF-8: {error.reason}", node=label) from error
        elif field.type != FieldDescriptor.TYPE_BYTES and not self.keys_only:
            self._packed(field, len(content), label)
        return None

    def _packed(self, field: FieldDescriptor, length: int, label: str) -> None:
        width = _FIXED_WIDTH.get(field.type)
        if width:
            if length % width:
                raise errors.MalformedError(f"{length} bytes are not a list of {width}-byte values", node=label)
            return
        end, self.position = self.position, self.position - length
        try:
            while self.position < end:
                _, self.position = read_varint(self.data, self.position, end)
        except ValueError as error:
            raise errors.MalformedError(str(error), node=label) from error

    def _indexed(self, field: FieldDescriptor) -> str:
        """Return the label of the next message of a field."""
        counts = self.frames[-1].counts
        counts[field.number] = index = counts.get(field.number, -1) + 1
        return f"{field.name}[{index}]" if is_repeated(field) else field.name

    def _enter(self, frame: _Frame) -> None:
        if len(self.frames) > limits.MESSAGE_DEPTH:
            reason = f"messages are nested deeper than {limits.MESSAGE_DEPTH}"
            raise errors.LimitError(reason, limit="MESSAGE_DEPTH")
        self.frames.append(frame)


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a field is a list or a map; protobuf 7 has dropped the label that used to tell."""
    known: Optional[bool] = getattr(field, "is_repeated", None)
    if known is None:
        label: int = getattr(field, "label")  # noqa: B009  unknown to the stubs of protobuf 7
        return label == FieldDescriptor.LABEL_REPEATED
    return known
