"""Count the messages inside a message without making them: two bytes of a file can take a hundred
bytes of memory.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Optional, Union

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from reference_impl.format import limits
from reference_impl.format.schema import _pool
from reference_impl.format.wire import BYTES, fields

# Larger messages are read field by field in place. Smaller messages, and messages with very many
# fields, are joined and parsed, which is faster but takes up to eight times their size for a while.
_LARGE = 1 << 16
_MANY = 10**5  # fields
_AT_ONCE = 1 << 26  # bytes
_TAGS = bytes(byte for byte in range(256) if byte & 7 == BYTES)


def most(size: int) -> int:
    """Return how many messages may be inside one of `size` bytes."""
    return min(limits.MESSAGES, max(limits.DENSE_MESSAGES, size // limits.MESSAGE_BYTES))


def too_many(data: bytes, descriptor: Descriptor) -> bool:
    """Return whether a serialised message holds more than `most`.

    Broken bytes count as none: the parser reports the error.
    """
    allowed = most(len(data))
    if len(data) <= 2 * allowed or _at_most(data) <= allowed:
        return False
    counter = _Counter(allowed)
    try:
        counter.large(memoryview(data), descriptor)
        counter.small()
    except (DecodeError, RuntimeWarning, ValueError):
        return False
    except _TooMany:
        return True
    return False


def _at_most(data: bytes) -> int:
    """Return a number of messages that cannot be exceeded: how many bytes could be the first byte
    of a message's tag.

    The lowest three bits of that byte are the wire type, however the rest of the tag is written.
    `_Counter` takes a hundred times as long, and no real file needs it.
    """
    return len(data) - len(data.translate(None, _TAGS))


class _TooMany(Exception):
    pass


class _Counter:
    def __init__(self, most: int) -> None:
        self.count, self.most = 0, most
        self.pending: dict[str, list[Union[bytes, memoryview]]] = defaultdict(list)
        self.types: dict[str, Descriptor] = {}

    def add(self, number: int) -> None:
        self.count += number
        if self.count > self.most:
            raise _TooMany

    def large(self, data: memoryview, descriptor: Descriptor) -> None:
        """Count in a large message and the large messages inside it. Small messages, and one of
        very many fields, are kept for `small`.
        """
        todo = [(data, descriptor)]
        while todo:
            data, descriptor = todo.pop()
            inner = _inner(data, descriptor, limits.WIRE_FIELDS if len(data) > _AT_ONCE else _MANY)
            if inner is None:
                if len(data) > _AT_ONCE:
                    raise _TooMany
                self.set_aside(data, descriptor)
                continue
            self.add(len(inner))
            for part, kind in inner:
                if len(part) >= _LARGE:
                    todo.append((part, kind))
                elif part:
                    self.set_aside(part, kind)

    def set_aside(self, part: Union[bytes, memoryview], kind: Descriptor) -> None:
        self.types[kind.full_name] = kind
        self.pending[kind.full_name].append(bytes(part))

    def small(self) -> None:
        """Count in the small messages, many of one type at once: concatenated messages parse as one
        message with longer lists.
        """
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
                    self.set_aside(part, kind)


def _inner(
    data: memoryview, descriptor: Descriptor, most: int
) -> Optional[list[tuple[memoryview, Descriptor]]]:
    """Return the messages directly inside one, uncopied; None for one of more than `most` fields.

    Raises ValueError.
    """
    kinds = {
        field.number: field.message_type
        for field in descriptor.fields
        if field.message_type is not None
    }
    found: list[tuple[memoryview, Descriptor]] = []
    for count, (number, wire, content, _) in enumerate(fields(data)):
        if count >= most:
            return None
        kind = kinds.get(number)
        if wire == BYTES and kind is not None:
            found.append((content, kind))
    return found
