"""Writes record files of the split format, right ones and, byte by byte, wrong ones."""

import struct

import cramjam

from reference_impl.format import schema
from reference_impl.format.container.highwayhash import highwayhash64
from reference_impl.format.wire import write_varint

KEY = struct.unpack("<4Q", b"Riegeli/records\n" * 2)
BLOCK = 1 << 16
PACKERS = {
    0: lambda data: data,
    ord("b"): lambda data: write_varint(len(data)) + bytes(cramjam.brotli.compress(data)),
    ord("z"): lambda data: write_varint(len(data)) + bytes(cramjam.zstd.compress(data)),
    ord("s"): lambda data: write_varint(len(data)) + bytes(cramjam.snappy.compress_raw(data)),
}


class Forge:
    """A record file in memory."""

    def __init__(self):
        self.data = bytearray()
        self.chunk(b"s", b"", 0, 0)

    def write(self, data):
        """Append the bytes of a chunk, a block header wherever one is due: how far back it began,
        how far ahead it ends.
        """
        begin, end = len(self.data), len(self.data)
        for _ in data:
            end += 1 + (24 if end % BLOCK == 0 else 0)
        while data:
            if len(self.data) % BLOCK == 0:
                places = struct.pack("<2Q", len(self.data) - begin, end - len(self.data))
                self.data += struct.pack("<Q", highwayhash64(KEY, places)) + places
            room = BLOCK - len(self.data) % BLOCK
            self.data += data[:room]
            data = data[room:]

    def chunk(self, kind, data, num_records, decoded_size, data_hash=None):
        """Append a chunk; returns its position."""
        begin = len(self.data)
        hashed = highwayhash64(KEY, data) if data_hash is None else data_hash
        rest = struct.pack("<4Q", len(data), hashed, kind[0] | num_records << 8, decoded_size)
        self.write(struct.pack("<Q", highwayhash64(KEY, rest)) + rest + data)
        while len(self.data) < begin + num_records:
            self.write(b"\0")
        return begin

    def records(self, *records, compression=0, **chunk):
        """Append records in one chunk; returns their positions."""
        begin = self.chunk(
            b"r", simple(records, compression), len(records), sum(map(len, records)), **chunk
        )
        return [begin + index for index in range(len(records))]

    def save(self, path):
        path.write_bytes(self.data)
        return path


def simple(records, compression=0):
    """The data of a simple chunk."""
    sizes = PACKERS[compression](b"".join(write_varint(len(record)) for record in records))
    return (
        bytes([compression])
        + write_varint(len(sizes))
        + sizes
        + PACKERS[compression](b"".join(records))
    )


def metadata(chunks, message):
    """ChunkMetadata for (type, position, size) triples."""
    infos = [
        schema.ChunkInfo(type=kind, offset=position, size=size) for kind, position, size in chunks
    ]
    return schema.ChunkMetadata(version={"producer": 1}, chunks=infos, message=message)


def path(*steps):
    """Field tags: ints are field numbers, ("index", 3) and ("key", "x") what they say."""
    tags = []
    for step in steps:
        if isinstance(step, int):
            tags.append(schema.FieldIndex(field=step))
        elif step[0] == "index":
            tags.append(schema.FieldIndex(index=step[1]))
        else:
            tags.append(schema.FieldIndex(map_key={"s": step[1]}))
    return tags
