"""Split files (saved_model.cpb) that a reader must refuse. A reader that reads no split files
refuses them all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.container.highwayhash import highwayhash64
from savedmodel_kit.forge.records import KEY, Forge, metadata, path
from savedmodel_kit.hostile.kind import copied, hostile, message_of

_BASE = "half_plus_two"
_MESSAGE = schema.ChunkInfo.MESSAGE
_META_GRAPHS = 2  # the number of the field of a SavedModel
_FIRST_RECORD = 64  # the offset of the first chunk behind the signature
_HEADER_BYTES = 40


def _part() -> bytes:
    return schema.serialize(message_of(_BASE))


def _write(
    folder: Path, chunked: schema.ChunkedMessage, change: Optional[Callable[[Forge], None]] = None
) -> None:
    """Write the base model as a split file of one chunk; `chunked` says how it is put together."""
    forge, part = Forge(), _part()
    (place,) = forge.records(part)
    forge.records(schema.serialize(metadata([(_MESSAGE, place, len(part))], chunked)))
    if change is not None:
        change(forge)
    _save(folder, forge)


def _save(folder: Path, forge: Forge) -> None:
    copied(_BASE, folder)
    (folder / "saved_model.pb").unlink()
    forge.save(folder / "saved_model.cpb")


def _whole() -> schema.ChunkedMessage:
    return schema.ChunkedMessage(chunk_index=0)


@hostile("SM-SPLIT-1", "L0")
def split_without_a_signature(folder: Path) -> None:
    """A split file whose first chunk is not the signature of a record file."""

    def change(forge: Forge) -> None:
        forge.data[24:64] = b"x" * _HEADER_BYTES

    _write(folder, _whole(), change)


@hostile("SM-SPLIT-1", "L0")
def split_with_a_damaged_header(folder: Path) -> None:
    """A split file in which one bit of a chunk header is flipped."""

    def change(forge: Forge) -> None:
        forge.data[_FIRST_RECORD + 16] ^= 1

    _write(folder, _whole(), change)


@hostile("SM-SPLIT-2", "L0")
def split_that_promises_a_terabyte(folder: Path) -> None:
    """A split file with a chunk of one record that promises to unpack to a terabyte."""
    forge = Forge()
    forge.chunk(b"r", b"", 1, 1 << 40)
    _save(folder, forge)


@hostile("SM-SPLIT-2", "L0")
def split_of_many_records(folder: Path) -> None:
    """A split file with the header of a chunk of 2^40 records."""
    forge = Forge()
    rest = struct.pack("<4Q", 0, 0, ord("r") | 1 << 48, 0)
    forge.write(struct.pack("<Q", highwayhash64(KEY, rest)) + rest)
    _save(folder, forge)


@hostile("SM-SPLIT-3", "L0")
def split_with_an_unknown_chunk(folder: Path) -> None:
    """A split file with a chunk of the type `?`."""
    forge = Forge()
    forge.chunk(b"?", b"", 0, 0)
    _save(folder, forge)


@hostile("SM-SPLIT-3", "L0")
def split_with_an_unknown_compression(folder: Path) -> None:
    """A split file whose records have the compression `?`."""
    forge = Forge()
    forge.chunk(b"r", b"?\x01\x01x", 1, 1)
    _save(folder, forge)


@hostile("SM-SPLIT-4", "L0")
def split_chunk_twice(folder: Path) -> None:
    """A split file that uses a chunk twice."""
    message = _whole()
    again = message.chunked_fields.add(field_tag=path(_META_GRAPHS, ("index", 0)))
    again.message.chunk_index = 0
    _write(folder, message)


@hostile("SM-SPLIT-5", "L0")
def split_into_no_field(folder: Path) -> None:
    """A split file that puts a chunk into field 99, which a SavedModel does not have."""
    message = schema.ChunkedMessage()
    part = message.chunked_fields.add(field_tag=path(99))
    part.message.chunk_index = 0
    _write(folder, message)


@hostile("SM-SPLIT-5", "L0")
def split_into_a_far_element(folder: Path) -> None:
    """A split file that puts a chunk into the element 10^9 of an empty list."""
    message = schema.ChunkedMessage()
    part = message.chunked_fields.add(field_tag=path(_META_GRAPHS, ("index", 10**9)))
    part.message.chunk_index = 0
    _write(folder, message)
