"""Tables and bundles made by hand, valid and not: every part can be replaced by what a damaged or
hostile file holds.

Written from the description of the format, apart from the product's own writer. Only CRC-32C and
the messages are shared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

import google_crc32c
import numpy as np

from reference_impl.format import schema

MAGIC = bytes.fromhex("57fb808b247547db")

Pairs = Sequence[tuple[bytes, bytes]]
Message = Union[schema.BundleEntryProto, schema.BundleHeaderProto]
# (start, length) of a slice in one dimension; None for the whole dimension.
Extent = Optional[tuple[int, int]]


def masked(data: bytes) -> int:
    """Return the masked CRC-32C of bytes."""
    crc = google_crc32c.value(bytes(data))
    return int((((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32)


def varint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def entry(shared: int, fresh: bytes, value: bytes) -> bytes:
    """Return an entry of a block: it shares so many bytes with the key before."""
    return varint(shared) + varint(len(fresh)) + varint(len(value)) + fresh + value


def block(
    pairs: Union[bytes, Pairs], restarts: Iterable[int] = (0,), count: Optional[int] = None
) -> bytes:
    """Return a block that shares no prefixes; `pairs` may instead be the bytes of its entries."""
    body = (
        pairs
        if isinstance(pairs, bytes)
        else b"".join(entry(0, key, value) for key, value in pairs)
    )
    offsets = list(restarts)
    stated = len(offsets) if count is None else count
    return body + struct.pack(f"<{len(offsets) + 1}I", *offsets, stated)


def trailer(contents: bytes, compression: int = 0) -> bytes:
    """Return the compression and the checksum that follow a block."""
    return bytes([compression]) + struct.pack("<I", masked(contents + bytes([compression])))


def table(
    blocks: Pairs,
    index: Optional[Pairs] = None,
    metaindex: Optional[bytes] = None,
    footer: Optional[bytes] = None,
    compression: int = 0,
) -> bytes:
    """Return a table of data blocks [(separator, contents), ...]; `index` replaces
    [(key, handle), ...], `footer` its 48 bytes.
    """
    out, handles = b"", []
    for separator, contents in blocks:
        handles.append((separator, varint(len(out)) + varint(len(contents))))
        out += contents + trailer(contents, compression)
    positions = []
    for contents in (metaindex or block(b""), block(handles if index is None else index, range(1))):
        positions.append(varint(len(out)) + varint(len(contents)))
        out += contents + trailer(contents)
    return out + (
        (positions[0] + positions[1]).ljust(40, b"\0") + MAGIC if footer is None else footer
    )


def header(**fields: Any) -> schema.BundleHeaderProto:
    """Return a header of one shard; `fields` replace its fields."""
    message = schema.BundleHeaderProto(num_shards=1)
    message.version.producer = 1
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def tensor(
    data: bytes, dtype: int = 1, shape: Sequence[int] = (), crc: bool = True, **fields: Any
) -> schema.BundleEntryProto:
    """Return an entry for these bytes, which the caller puts where `offset` and `shard_id` say."""
    message = schema.BundleEntryProto(dtype=dtype, size=len(data))
    message.shape.SetInParent()
    for size in shape:
        message.shape.dim.add(size=size)
    if crc:
        message.crc32c = masked(data)
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def add_slice(message: schema.BundleEntryProto, *extents: Extent) -> schema.BundleEntryProto:
    """List a slice in the entry of a partitioned tensor, and return the entry."""
    part = message.slices.add()
    for extent in extents:
        item = part.extent.add()
        if extent is not None:
            item.start, item.length = extent
    return message


def index_of(
    entries: Mapping[bytes, Union[bytes, Message]], head: Union[bytes, Message, bool, None] = None
) -> bytes:
    """Return the table of a bundle: {raw key: message or bytes}, and its header (a message, bytes,
    or False for none).
    """
    stored = {key: _bytes(value) for key, value in entries.items()}
    if not isinstance(head, bool):
        stored[b""] = _bytes(head or header())
    pairs = sorted(stored.items())
    restarts, position = [], 0
    for key, value in pairs:
        restarts.append(position)
        position += len(entry(0, key, value))
    return table([(b"\xff" * 9, block(pairs, restarts or (0,)))])


def bundle(
    prefix: Path,
    entries: Mapping[bytes, Union[bytes, Message]],
    data: Union[bytes, Sequence[bytes]] = b"",
    head: Union[bytes, Message, bool, None] = None,
) -> Path:
    """Write a bundle, `index_of` the entries and the bytes of its shards, and return its prefix."""
    shards = [data] if isinstance(data, bytes) else data
    for number, contents in enumerate(shards):
        name = f"{prefix.name}.data-{number:05d}-of-{len(shards):05d}"
        prefix.with_name(name).write_bytes(contents)
    prefix.with_name(f"{prefix.name}.index").write_bytes(index_of(entries, head))
    return prefix


def _bytes(value: Union[bytes, Message]) -> bytes:
    return value if isinstance(value, bytes) else value.SerializeToString()


def strings(
    items: Sequence[bytes],
    order: str = "<",
    lengths: Optional[Sequence[int]] = None,
    checksum: Optional[int] = None,
) -> tuple[bytes, int]:
    """Return the bytes of a string tensor and its masked checksum, in either byte order."""
    lengths = [len(item) for item in items] if lengths is None else lengths
    fixed = np.array([length % 2**32 for length in lengths], dtype=order + "u4").tobytes()
    stored = struct.pack(order + "I", masked(fixed) if checksum is None else checksum)
    body = b"".join(items)
    return b"".join(map(varint, lengths)) + stored + body, masked(fixed + stored + body)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
