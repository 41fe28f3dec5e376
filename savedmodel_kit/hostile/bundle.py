"""Checkpoints whose table is sound, and whose entries, values or slices are not."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

from reference_impl.format import schema
from reference_impl.format.bundle.slices import slice_key
from savedmodel_kit.forge import tables
from savedmodel_kit.hostile.kind import PREFIX, SHARD, copied, hostile

_BASE = "half_plus_two"
_FOUR = struct.pack("<4f", 1, 2, 3, 4)
_INT32, _STRING, _RESOURCE, _VARIANT, _FLOAT32_REF = 3, 7, 20, 21, 101
Slices = Sequence[tuple[int, int]]


def _checkpoint(
    folder: Path,
    entry: schema.BundleEntryProto,
    data: bytes = _FOUR,
    head: Optional[schema.BundleHeaderProto] = None,
) -> None:
    """Write a checkpoint of one tensor, `v`, into a copy of the base model."""
    _entries(folder, {b"v": entry}, data, head)


def _entries(
    folder: Path,
    entries: dict[bytes, schema.BundleEntryProto],
    data: bytes = _FOUR,
    head: Union[schema.BundleHeaderProto, bool, None] = None,
) -> None:
    copied(_BASE, folder)
    tables.bundle(folder / PREFIX, entries, data, head)


def _vector(**fields: Any) -> schema.BundleEntryProto:
    """Return the sound entry of the vector [1, 2, 3, 4] with some of its fields replaced."""
    return tables.tensor(_FOUR, shape=(4,), **fields)


def _shaped(*sizes: int, size: int = len(_FOUR)) -> schema.BundleEntryProto:
    """Return the entry of a tensor of another shape over the same bytes."""
    entry = tables.tensor(_FOUR, shape=sizes)
    entry.size = size
    return entry


# Header


@hostile("SM-BUNDLE-1", "L1")
def no_header(folder: Path) -> None:
    """An index without the empty key."""
    _entries(folder, {b"v": _vector()}, head=False)


@hostile("SM-BUNDLE-1", "L1")
def no_shards(folder: Path) -> None:
    """A header of no shards."""
    _checkpoint(folder, _vector(), head=tables.header(num_shards=0))


@hostile("SM-BUNDLE-2", "L1")
def newer_reader_wanted(folder: Path) -> None:
    """A header that asks for a reader of version 2."""
    head = tables.header()
    head.version.min_consumer = 2
    _checkpoint(folder, _vector(), head=head)


@hostile("SM-BUNDLE-2", "L1")
def reader_excluded(folder: Path) -> None:
    """A header that excludes readers of version 1."""
    head = tables.header()
    head.version.bad_consumers.append(1)
    _checkpoint(folder, _vector(), head=head)


@hostile("SM-BUNDLE-3", "L1")
def unknown_byte_order(folder: Path) -> None:
    """A header of the byte order 7, which does not exist."""
    _checkpoint(folder, _vector(), head=tables.header(endianness=7))


# Entry


@hostile("SM-BUNDLE-5", "L1")
def shard_missing(folder: Path) -> None:
    """A checkpoint whose only shard is gone."""
    _checkpoint(folder, _vector())
    (folder / SHARD).unlink()


@hostile("SM-DIR-6", "L1")
def shard_is_a_directory(folder: Path) -> None:
    """A checkpoint whose only shard is a directory."""
    shard_missing.make(folder)
    (folder / SHARD).mkdir()


@hostile("SM-BUNDLE-5", "L1")
def shard_out_of_range(folder: Path) -> None:
    """An entry in shard 1 of a checkpoint with one shard."""
    _checkpoint(folder, _vector(shard_id=1))


@hostile("SM-BUNDLE-5", "L1")
def shard_cut_off(folder: Path) -> None:
    """A shard that ends before the tensor does."""
    _checkpoint(folder, _vector(), _FOUR[:-1])


@hostile("SM-BUNDLE-5", "L1")
def negative_offset(folder: Path) -> None:
    """A tensor that begins 16 bytes before the shard."""
    _checkpoint(folder, _vector(offset=-16))


@hostile("SM-BUNDLE-6", "L1")
def size_of_another_shape(folder: Path) -> None:
    """Four float32 of shape [3]."""
    _checkpoint(folder, _shaped(3))


@hostile("SM-BUNDLE-6", "L1")
def terabyte_in_four_bytes(folder: Path) -> None:
    """A tensor of a terabyte that has 16 bytes."""
    _checkpoint(folder, _shaped(1 << 38))


@hostile("SM-BUNDLE-7", "L1")
def flipped_value(folder: Path) -> None:
    """A float32 vector with one bit of a value flipped."""
    _checkpoint(folder, _vector(), bytes([_FOUR[0] ^ 1]) + _FOUR[1:])


@hostile("SM-BUNDLE-7", "L1")
def flipped_string(folder: Path) -> None:
    """A string tensor with one bit of an element flipped."""
    data, checksum = tables.strings([b"one", b"two"])
    entry = tables.tensor(data, _STRING, (2,), crc32c=checksum)
    _checkpoint(folder, entry, data[:-1] + b"n")


@hostile("SM-BUNDLE-8", "L1")
def unknown_rank(folder: Path) -> None:
    """A stored tensor of unknown rank."""
    entry = tables.tensor(_FOUR)
    entry.shape.unknown_rank = True
    _checkpoint(folder, entry)


@hostile("SM-BUNDLE-8", "L1")
def negative_sizes(folder: Path) -> None:
    """A tensor of shape [-2, -2], whose product is 4."""
    _checkpoint(folder, _shaped(-2, -2))


@hostile("SM-BUNDLE-8", "L1")
def too_many_dimensions(folder: Path) -> None:
    """A tensor of 255 dimensions."""
    data = _FOUR[:4]
    _checkpoint(folder, tables.tensor(data, shape=[1] * 255), data)


@hostile("SM-BUNDLE-8", "L1")
def product_over_64_bits(folder: Path) -> None:
    """A tensor of shape [2^32, 2^32], whose product is 0 in 64 bits."""
    _checkpoint(folder, _shaped(1 << 32, 1 << 32, size=0))


@hostile("SM-BUNDLE-9", "L1")
def unknown_dtype(folder: Path) -> None:
    """A tensor of the dtype 77, which does not exist."""
    _checkpoint(folder, _vector(dtype=77))


@hostile("SM-BUNDLE-9", "L1")
def reference_dtype(folder: Path) -> None:
    """A stored tensor of float32 references."""
    _checkpoint(folder, _vector(dtype=_FLOAT32_REF))


@hostile("SM-BUNDLE-9", "L1")
def resource_dtype(folder: Path) -> None:
    """A stored tensor of resources."""
    _checkpoint(folder, _vector(dtype=_RESOURCE))


# Strings and variants


@hostile("SM-BUNDLE-12", "L1")
def lengths_of_another_checksum(folder: Path) -> None:
    """A string tensor whose checksum of the lengths differs."""
    data, checksum = tables.strings([b"one", b"", b"three"], checksum=1)
    _checkpoint(folder, tables.tensor(data, _STRING, (3,), crc32c=checksum), data)


@hostile("SM-BUNDLE-13", "L1")
def lengths_that_do_not_add_up(folder: Path) -> None:
    """A string tensor whose last length is one too large."""
    data, checksum = tables.strings([b"one", b"", b"three"], lengths=[3, 0, 6])
    _checkpoint(folder, tables.tensor(data, _STRING, (3,), crc32c=checksum), data)


def _variants(items: Sequence[bytes], spoil: int = 0) -> tuple[bytes, int]:
    """Return the bytes of a variant tensor and its checksum; `spoil` is added to the checksum of
    the last element.
    """
    stored = summed = b""
    for number, item in enumerate(items):
        summed += struct.pack("<Q", len(item)) + item
        wrong = spoil if number == len(items) - 1 else 0
        checksum = struct.pack("<I", (tables.masked(summed) + wrong) % 2**32)
        stored += tables.varint(len(item)) + item + checksum
        summed += checksum
    return stored, tables.masked(summed)


@hostile("SM-BUNDLE-15", "L1")
def variant_of_another_checksum(folder: Path) -> None:
    """A variant tensor whose second element has another checksum."""
    data, checksum = _variants([b"a", b"bc"], spoil=1)
    _checkpoint(folder, tables.tensor(data, _VARIANT, (2,), crc32c=checksum), data)


@hostile("SM-BUNDLE-15", "L1")
def variant_with_a_rest(folder: Path) -> None:
    """A variant tensor of shape [1] that has two elements."""
    data, checksum = _variants([b"a", b"bc"])
    _checkpoint(folder, tables.tensor(data, _VARIANT, (1,), crc32c=checksum), data)


# Slices


def _part(start: int, length: int, **fields: Any) -> schema.BundleEntryProto:
    """Return the entry of one slice of the vector [1, 2, 3, 4]."""
    data = _FOUR[4 * start : 4 * (start + length)]
    return tables.tensor(data, shape=(length,), offset=4 * start, **fields)


def _partitioned(
    parts: dict[tuple[int, int], schema.BundleEntryProto], listed: Optional[Slices] = None
) -> dict[bytes, schema.BundleEntryProto]:
    """Return the entries of a vector `v` of four numbers in parts; `listed` are the slices that the
    entry of `v` lists.
    """
    whole = schema.BundleEntryProto(dtype=1)
    whole.shape.dim.add(size=4)
    for extent in parts if listed is None else listed:
        tables.add_slice(whole, extent)
    return {**{slice_key(b"v", (key,)): entry for key, entry in parts.items()}, b"v": whole}


@hostile("SM-BUNDLE-17", "L1")
def slices_overlap(folder: Path) -> None:
    """A vector of four numbers in the slices 0 to 2 and 2 to 3, which share an element."""
    _entries(folder, _partitioned({(0, 3): _part(0, 3), (2, 2): _part(2, 2)}))


@hostile("SM-BUNDLE-17", "L1")
def slices_leave_a_gap(folder: Path) -> None:
    """A vector of four numbers whose slices leave out the second."""
    _entries(folder, _partitioned({(0, 1): _part(0, 1), (2, 2): _part(2, 2)}))


@hostile("SM-BUNDLE-18", "L1")
def slice_outside(folder: Path) -> None:
    """A vector of four numbers with a slice from 2 to 5."""
    _entries(folder, _partitioned({(2, 4): _part(0, 4)}))


@hostile("SM-BUNDLE-18", "L1")
def slice_near_2_63(folder: Path) -> None:
    """A slice whose start and length add up to more than 64 bits hold."""
    _entries(folder, _partitioned({(2**63 - 2, 2**63 - 1): _part(0, 4)}))


@hostile("SM-BUNDLE-19", "L1")
def slice_without_an_entry(folder: Path) -> None:
    """A tensor that lists two slices; the index has neither."""
    _entries(folder, _partitioned({(0, 4): _part(0, 4)}, listed=[(0, 2), (2, 2)]))


@hostile("SM-BUNDLE-19", "L1")
def slice_of_another_dtype(folder: Path) -> None:
    """A slice of int32 of a float32 tensor."""
    parts = {(0, 2): _part(0, 2), (2, 2): _part(2, 2, dtype=_INT32)}
    _entries(folder, _partitioned(parts))


@hostile("SM-BUNDLE-19", "L1")
def slice_of_another_shape(folder: Path) -> None:
    """A slice that lists two elements and has an entry of three."""
    _entries(folder, _partitioned({(0, 2): _part(0, 3), (2, 2): _part(2, 2)}))
