"""Count the messages inside a message without making them: two bytes of a file can take a hundred bytes of memory."""

from __future__ import annotations

from collections import defaultdict
from typing import Optional, Union

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from reference_impl.format import limits
from reference_impl.format.schema import _pool
from reference_impl.format.wire import BYTES, fields

# Larger messages are read field by field in place. Smaller messages, and messages with very many fields, are joined and parsed,
# which is faster but takes up to eight times their size for a while.
_LARGE = 1 << 16
_MANY = 10**5  # fields
_AT_ONCE = 1 << 26  # bytes


def too_many(data: bytes, descriptor: Descriptor) -> bool:
    """Return whether there are more than `limits.MESSAGES`. Broken bytes count as none: the parser reports the error.

    Args:
      data: the serialised message.
      descriptor: its type.
    """
    if len(data) <= 2 * limits.MESSAGES:
        return False
    counter = _Counter()
    try:
        counter.large(memoryview(data), descriptor)
        counter.small()
    except (DecodeError, RuntimeWarning, ValueError):
        return False
    except _TooMany:
        return True
    return False


class _TooMany(Exception):
    pass


class _Counter:
    def __init__(self) -> None:
        self.count = 0
        self.pending: dict[str, list[Union[bytes, memoryview]]] = defaultdict(list)
        self.types: dict[str, Descriptor] = {}

    def add(self, number: int) -> None:
        self.count += number
        if self.count > limits.MESSAGES:
            raise _TooMany

    def large(self, data: memoryview, descriptor: Descriptor) -> None:
        """Count in a large message and the large messages inside it. Small messages, and one of very many fields, are kept for
        `small`.
        """
        todo = [(data, descriptor)]
        while todo:
            data, descriptor = todo.pop()
            inner = _inner(data, descriptor, limits.WIRE_FIELDS if len(data) > _AT_ONCE else _MANY)
            if inner is None:
                if len(data) > _AT_ONCE:
                    raise _TooMany
                self.put_by(data, descriptor)
                continue
            self.add(len(inner))
            for part, kind in inner:
                if len(part) >= _LARGE:
                    todo.append((part, kind))
                elif part:
                    self.put_by(part, kind)

    def put_by(self, part: Union[bytes, memoryview], kind: Descriptor) -> None:
        self.types[kind.full_name] = kind
        self.pending[kind.full_name].append(bytes(part))

    def small(self) -> None:
        """Count in the small messages, many of one type at once: concatenated messages parse as one message with longer lists."""
        while self.pending:
            name, parts = self.pending.popitem()
            while parts:
                batch = [parts.pop()]
                size = len(batch[0])
                while parts and size + len(parts[-1]) <= _AT_ONCE:
                    size += len(parts[-1])
                    batch.append(parts.pop())
                self.joined(b"".join(batch), self.types[name])

    def joined(self, data: bytes, descriptor: Descriptor) -> None:
        unopened = _pool.schema(_pool.unopened)
        shallow_type = unopened.pool.FindMessageTypeByName(descriptor.full_name)
        shallow = unopened.message_class(shallow_type)()
        shallow.ParseFromString(data)
        for field in shallow_type.fields:
            inner = getattr(shallow, field.name)
            self.add(len(inner))
            kind = descriptor.fields_by_name[field.name].message_type
            assert kind is not None
            for part in inner:
                if part:
                    self.put_by(part, kind)


def _inner(data: memoryview, descriptor: Descriptor, most: int) -> Optional[list[tuple[memoryview, Descriptor]]]:
    """Return the messages directly inside one, uncopied; None for one of more than `most` fields. Raises ValueError."""
    kinds = {field.number: field.message_type for field in descriptor.fields if field.message_type is not None}
    found: list[tuple[memoryview, Descriptor]] = []
    for count, (number, wire, content, _) in enumerate(fields(data)):
        if count >= most:
            return None
        kind = kinds.get(number)
        if wire == BYTES and kind is not None:
            found.append((content, kind))
    return found
