"""Indexes of a checkpoint that are not a sound table."""

from __future__ import annotations

import struct
from pathlib import Path

from savedmodel_kit.forge import tables
from savedmodel_kit.hostile.kind import PREFIX, copied, hostile

_BASE = "half_plus_two"  # two float32 scalars: `a` is 0.5, `b` is 2
_A, _B = struct.pack("<f", 0.5), struct.pack("<f", 2.0)
_PAIRS = [
    (b"", tables.header().SerializeToString()),
    (b"a", tables.tensor(_A).SerializeToString()),
    (b"b", tables.tensor(_B, offset=4).SerializeToString()),
]
_HEADER, _FIRST, _SECOND = (tables.entry(0, key, value) for key, value in _PAIRS)
_SEPARATOR = b"c"
_FOOTER_BYTES = 48


def sound() -> bytes:
    """Return the index of the base model, before anything is changed."""
    return tables.table([(_SEPARATOR, tables.block(_PAIRS))])


def _with_index(folder: Path, index: bytes) -> None:
    (copied(_BASE, folder) / f"{PREFIX}.index").write_bytes(index)


def _with_block(folder: Path, block: bytes, separator: bytes = _SEPARATOR) -> None:
    _with_index(folder, tables.table([(separator, block)]))


def _footer(metaindex: bytes, index: bytes) -> bytes:
    return (metaindex + index).ljust(_FOOTER_BYTES - len(tables.MAGIC), b"\0") + tables.MAGIC


@hostile("SM-TABLE-1", "L1")
def short_index(folder: Path) -> None:
    """An index of 47 bytes: the last ones of a sound index."""
    _with_index(folder, sound()[-47:])


@hostile("SM-TABLE-1", "L1")
def empty_index(folder: Path) -> None:
    """An index without a byte."""
    _with_index(folder, b"")


@hostile("SM-TABLE-1", "L1")
def wrong_magic(folder: Path) -> None:
    """An index whose magic number differs in one bit."""
    data = bytearray(sound())
    data[-1] ^= 1
    _with_index(folder, bytes(data))


@hostile("SM-TABLE-2", "L1")
def truncated_table(folder: Path) -> None:
    """An index that lost its first 30 bytes, so that the blocks do not end before the footer."""
    _with_index(folder, sound()[30:])


@hostile("SM-TABLE-2", "L1")
def handle_outside(folder: Path) -> None:
    """A footer whose handle of the index block points a terabyte beyond the file."""
    blocks = sound()[:-_FOOTER_BYTES]
    metaindex = tables.varint(len(tables.block(_PAIRS)) + 5) + tables.varint(8)
    outside = tables.varint(1 << 40) + tables.varint(8)
    _with_index(folder, blocks + _footer(metaindex, outside))


@hostile("SM-TABLE-3", "L1")
def keys_out_of_order(folder: Path) -> None:
    """A block in which the key `b` stands before the key `a`."""
    _with_block(folder, tables.block(_HEADER + _SECOND + _FIRST))


@hostile("SM-TABLE-3", "L1")
def key_twice(folder: Path) -> None:
    """A block that has the key `a` twice, with two values."""
    other = tables.entry(0, b"a", tables.tensor(_B, offset=4).SerializeToString())
    _with_block(folder, tables.block(_HEADER + _FIRST + other + _SECOND))


@hostile("SM-TABLE-6", "L1")
def flipped_block(folder: Path) -> None:
    """A data block with one bit flipped: the offset of `b` is 5 instead of 4."""
    data = bytearray(sound())
    at = data.index(_SECOND) + _SECOND.index(b"\x20\x04") + 1
    data[at] ^= 1
    _with_index(folder, bytes(data))


@hostile("SM-TABLE-7", "L1")
def unknown_compression(folder: Path) -> None:
    """A data block of the compression 2, which does not exist, with the right checksum."""
    _with_index(folder, tables.table([(_SEPARATOR, tables.block(_PAIRS))], compression=2))


@hostile("SM-BLOCK-1", "L1")
def prefix_too_long(folder: Path) -> None:
    """An entry that shares five bytes with a key of one byte."""
    value = tables.tensor(_B, offset=4).SerializeToString()
    _with_block(folder, tables.block(_HEADER + _FIRST + tables.entry(5, b"b", value)))


@hostile("SM-BLOCK-1", "L1")
def value_into_restarts(folder: Path) -> None:
    """An entry whose value reaches into the restarts of the block."""
    value = tables.tensor(_B, offset=4).SerializeToString()
    cut = tables.entry(0, b"b", value)[:-2]
    _with_block(folder, tables.block(_HEADER + _FIRST + cut))


@hostile("SM-BLOCK-2", "L1")
def no_restart(folder: Path) -> None:
    """A block that says it has no restart."""
    _with_block(folder, tables.block(_PAIRS, count=0))


@hostile("SM-BLOCK-2", "L1")
def first_restart_not_first(folder: Path) -> None:
    """A block whose first restart is its second entry."""
    _with_block(folder, tables.block(_PAIRS, restarts=(len(_HEADER),)))


@hostile("SM-BLOCK-3", "L1")
def restart_inside_an_entry(folder: Path) -> None:
    """A block with a restart one byte after the start of its second entry."""
    _with_block(folder, tables.block(_PAIRS, restarts=(0, len(_HEADER) + 1)))


@hostile("SM-BLOCK-3", "L1")
def restart_with_a_prefix(folder: Path) -> None:
    """A restart whose entry shares a byte with the key before."""
    shared = tables.entry(1, b"b", tables.tensor(_B, offset=4).SerializeToString())
    at = len(_HEADER + _FIRST)
    _with_block(folder, tables.block(_HEADER + _FIRST + shared, restarts=(0, at)))


@hostile("SM-BLOCK-4", "L1")
def key_above_the_index(folder: Path) -> None:
    """A data block with the key `b`, whose key in the index block is `a`."""
    _with_block(folder, tables.block(_PAIRS), separator=b"a")


@hostile("SM-BLOCK-4", "L1")
def blocks_overlap(folder: Path) -> None:
    """An index block that has one data block twice."""
    block = tables.block(_PAIRS)
    handle = tables.varint(0) + tables.varint(len(block))
    index = [(b"c", handle), (b"d", handle)]
    _with_index(folder, tables.table([(_SEPARATOR, block)], index=index))


@hostile("SM-BLOCK-5", "L1")
def key_bomb(folder: Path) -> None:
    """A key of 64 KiB that each of 3,000 entries repeats: 80 KB stand for 190 MB of keys."""
    long = b"k" * (1 << 16)
    body = _HEADER + tables.entry(0, long, b"")
    body += b"".join(tables.entry(1 << 16, b"%04d" % number, b"") for number in range(3000))
    _with_block(folder, tables.block(body), separator=b"z")
