"""Changes of serialised messages, field by field: what comes out is well-formed on the wire,
whatever it means.
"""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from typing import Any, Optional

from property_tests.fuzz.mutation import NUMBERS, TEXTS, mutate
from reference_impl.format.wire import END_GROUP, GROUP, WIDTHS, WireError, fields, write_varint

_DEPTH = 40
_KEPT = 200  # values kept of each field
_MESSAGE, _BYTES, _STRING = 11, 12, 9

Field = tuple[int, int, Any]  # number, wire type, value (an int, or bytes)


def split(data: bytes) -> Optional[list[Field]]:
    """The fields of a message; None for what is none."""
    try:
        found = [(number, wire, content) for number, wire, content, _ in fields(data)]
    except WireError:
        return None
    return None if any(wire in (GROUP, END_GROUP) for _, wire, _ in found) else found


def join(fields: list[Field]) -> bytes:
    """The message of these fields."""
    parts = []
    for number, wire, value in fields:
        parts.append(write_varint(number << 3 | wire))
        if wire == 0:
            parts.append(write_varint(value % 2**64))
        else:
            parts.append(write_varint(len(value)) + value if wire == 2 else value)
    return b"".join(parts)


class Mutator:
    """Changes messages of one type.

    Values come from the seeds too: a message where another of its type was, a name of the model.

    Args:
      cls: the message class.
      seeds: serialised messages of it.
    """

    def __init__(self, cls: Any, seeds: list[bytes]) -> None:
        self.descriptor = cls.DESCRIPTOR
        self.values: dict[str, list[bytes]] = defaultdict(list)
        self.names: list[bytes] = list(TEXTS)
        for seed in seeds:
            self._collect(seed, self.descriptor, 0)

    def _collect(self, data: bytes, kind: Any, depth: int) -> None:
        for number, wire, value in split(data) or ():
            field = kind.fields_by_number.get(number)
            if field is None or wire != 2 or depth > _DEPTH:
                continue
            if field.type == _MESSAGE:
                known = self.values[field.message_type.full_name]
                if len(known) < _KEPT and value not in known:
                    known.append(value)
                self._collect(value, field.message_type, depth + 1)
            elif field.type == _STRING and len(self.names) < 10 * _KEPT and value not in self.names:
                self.names.append(value)

    def mutate(self, rng: random.Random, data: bytes) -> bytes:
        """One change somewhere."""
        return self._mutate(rng, data, self.descriptor, 0)

    def _mutate(self, rng: random.Random, data: bytes, kind: Any, depth: int) -> bytes:
        fields = split(data)
        if fields is None or depth > _DEPTH:
            return mutate(rng, data)
        inner = [
            index
            for index, (number, wire, value) in enumerate(fields)
            if wire == 2
            and value
            and (field := kind.fields_by_number.get(number)) is not None
            and field.type == _MESSAGE
        ]
        if inner and rng.random() < 0.85:
            index = rng.choice(inner)
            number, wire, value = fields[index]
            fields[index] = (
                number,
                wire,
                self._mutate(rng, value, kind.fields_by_number[number].message_type, depth + 1),
            )
            return join(fields)
        return join(self._change(rng, fields, kind))

    def _change(self, rng: random.Random, fields: list[Field], kind: Any) -> list[Field]:
        what = rng.randrange(8)
        if not fields or what == 0:
            if kind.fields:
                fields.insert(
                    rng.randrange(len(fields) + 1), self._new(rng, rng.choice(list(kind.fields)))
                )
            return fields
        at = rng.randrange(len(fields))
        number, wire, value = fields[at]
        if what == 1:
            del fields[at]
        elif what == 2:
            fields[at:at] = [fields[at]] * rng.choice((1, 1, 2, 300))
        elif what == 3:
            other = rng.randrange(len(fields))
            fields[at], fields[other] = fields[other], fields[at]
        elif what == 4 and rng.random() < 0.3:
            fields[at] = rng.choice((number + 1, rng.randrange(1, 200), 2**29 - 1)), wire, value
        else:
            field = kind.fields_by_number.get(number)
            fields[at] = (
                (number, wire, self._value(rng, wire, value))
                if field is None
                else self._new(rng, field, value)
            )
        return fields

    def _value(self, rng: random.Random, wire: int, value: Any) -> Any:
        if wire == 0:
            return rng.choice(NUMBERS)
        return mutate(rng, value) if wire == 2 else rng.randbytes(WIDTHS[wire])

    def _new(self, rng: random.Random, field: Any, old: Any = b"") -> Field:
        """A field with another value: what the type can hold, now and then what it cannot."""
        if field.type == _MESSAGE:
            known = self.values.get(field.message_type.full_name)
            return field.number, 2, rng.choice(known) if known else b""
        if field.type == _STRING:
            return field.number, 2, rng.choice(self.names)
        if field.type == _BYTES:
            return field.number, 2, mutate(rng, old if isinstance(old, bytes) else b"")
        if field.cpp_type == field.CPPTYPE_DOUBLE:
            return (
                field.number,
                1,
                struct.pack("<d", rng.choice((0.0, 1e308, float("nan"), float("-inf")))),
            )
        if field.cpp_type == field.CPPTYPE_FLOAT:
            return (
                field.number,
                5,
                struct.pack("<f", rng.choice((0.0, -1.0, float("nan"), float("inf")))),
            )
        if field.type in (6, 16, 7, 15):  # fixed 64, sfixed64, fixed32, sfixed32
            width = 8 if field.type in (6, 16) else 4
            return (
                field.number,
                1 if width == 8 else 5,
                (rng.choice(NUMBERS) % 256**width).to_bytes(width, "little"),
            )
        near = old if isinstance(old, int) else 0
        return (
            field.number,
            0,
            rng.choice((near + 1, max(0, near - 1), rng.randrange(200), *NUMBERS)),
        )
