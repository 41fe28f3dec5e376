"""Tables and bundles made by hand, valid and not: every part can be replaced by what a damaged or
hostile file holds.

Written from the description of the format, apart from the product's own writer; only CRC-32C and
the messages are shared.
"""

import struct

import google_crc32c
import numpy as np

from reference_impl.format import schema

MAGIC = bytes.fromhex("57fb808b247547db")


def masked(data):
    crc = google_crc32c.value(bytes(data))
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def entry(shared, fresh, value):
    return varint(shared) + varint(len(fresh)) + varint(len(value)) + fresh + value


def block(pairs, restarts=(0,), count=None):
    """A block that shares no prefixes; `pairs` may instead be the bytes of its entries."""
    body = (
        pairs
        if isinstance(pairs, bytes)
        else b"".join(entry(0, key, value) for key, value in pairs)
    )
    return body + struct.pack(
        f"<{len(restarts) + 1}I", *restarts, len(restarts) if count is None else count
    )


def trailer(contents, compression=0):
    return bytes([compression]) + struct.pack("<I", masked(contents + bytes([compression])))


def table(blocks, index=None, metaindex=None, footer=None, compression=0):
    """A table of data blocks [(separator, contents), ...]; `index` replaces [(key, handle), ...],
    `footer` its 48 bytes.
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


def header(**fields):
    message = schema.BundleHeaderProto(num_shards=1)
    message.version.producer = 1
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def tensor(data, dtype=1, shape=(), crc=True, **fields):
    """A BundleEntryProto for these bytes, which the caller puts where `offset` and `shard_id`
    say.
    """
    message = schema.BundleEntryProto(dtype=dtype, size=len(data))
    message.shape.SetInParent()
    for size in shape:
        message.shape.dim.add(size=size)
    if crc:
        message.crc32c = masked(data)
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def add_slice(message, *extents):
    """Lists a slice; an extent is (start, length) or None for the whole dimension."""
    part = message.slices.add()
    for extent in extents:
        item = part.extent.add()
        if extent is not None:
            item.start, item.length = extent
    return message


def bundle(prefix, entries, data=b"", head=None):
    """Writes a bundle: {raw key: message or bytes}, the bytes of its shards, its header (a message,
    bytes, or False for none).
    """
    pairs = (
        []
        if head is False
        else [(b"", head if isinstance(head, bytes) else (head or header()).SerializeToString())]
    )
    pairs += [
        (key, value if isinstance(value, bytes) else value.SerializeToString())
        for key, value in entries.items()
    ]
    pairs.sort()
    restarts, position = [], 0
    for key, value in pairs:
        restarts.append(position)
        position += len(entry(0, key, value))
    shards = [data] if isinstance(data, bytes) else data
    for number, contents in enumerate(shards):
        (prefix.parent / f"{prefix.name}.data-{number:05d}-of-{len(shards):05d}").write_bytes(
            contents
        )
    (prefix.parent / f"{prefix.name}.index").write_bytes(
        table([(b"\xff" * 9, block(pairs, restarts or (0,)))])
    )
    return prefix


def strings(items, order="<", lengths=None, checksum=None):
    """The bytes of a string tensor and its masked checksum, in either byte order."""
    lengths = [len(item) for item in items] if lengths is None else lengths
    fixed = np.array([length % 2**32 for length in lengths], dtype=order + "u4").tobytes()
    stored = struct.pack(order + "I", masked(fixed) if checksum is None else checksum)
    body = b"".join(items)
    return b"".join(map(varint, lengths)) + stored + body, masked(fixed + stored + body)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
