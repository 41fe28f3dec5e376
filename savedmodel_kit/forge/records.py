"""Record files of the split format made by hand, right ones and, byte by byte, wrong ones."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Optional, Union

from reference_impl.format import schema
from reference_impl.format.container.highwayhash import highwayhash64
from reference_impl.format.wire import write_varint

KEY = struct.unpack("<4Q", b"Riegeli/records\n" * 2)
BLOCK = 1 << 16

Step = Union[int, tuple[str, Any]]


def _brotli(data: bytes) -> bytes:
    import cramjam  # only compressed files need it

    return write_varint(len(data)) + bytes(cramjam.brotli.compress(data))


def _zstandard(data: bytes) -> bytes:
    import cramjam

    return write_varint(len(data)) + bytes(cramjam.zstd.compress(data))


def _snappy(data: bytes) -> bytes:
    import cramjam

    return write_varint(len(data)) + bytes(cramjam.snappy.compress_raw(data))


PACKERS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    ord("b"): _brotli,
    ord("z"): _zstandard,
    ord("s"): _snappy,
}


class Forge:
    """A record file in memory."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.chunk(b"s", b"", 0, 0)

    def write(self, data: bytes) -> None:
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

    def chunk(
        self,
        kind: bytes,
        data: bytes,
        num_records: int,
        decoded_size: int,
        data_hash: Optional[int] = None,
    ) -> int:
        """Append a chunk; return its position."""
        begin = len(self.data)
        hashed = highwayhash64(KEY, data) if data_hash is None else data_hash
        rest = struct.pack("<4Q", len(data), hashed, kind[0] | num_records << 8, decoded_size)
        self.write(struct.pack("<Q", highwayhash64(KEY, rest)) + rest + data)
        while len(self.data) < begin + num_records:
            self.write(b"\0")
        return begin

    def records(self, *records: bytes, compression: int = 0, **chunk: Any) -> list[int]:
        """Append records in one chunk; return their positions."""
        begin = self.chunk(
            b"r", simple(records, compression), len(records), sum(map(len, records)), **chunk
        )
        return [begin + index for index in range(len(records))]

    def save(self, path: Path) -> Path:
        path.write_bytes(self.data)
        return path


def simple(records: Iterable[bytes], compression: int = 0) -> bytes:
    """Return the data of a simple chunk."""
    kept = list(records)
    sizes = PACKERS[compression](b"".join(write_varint(len(record)) for record in kept))
    return (
        bytes([compression])
        + write_varint(len(sizes))
        + sizes
        + PACKERS[compression](b"".join(kept))
    )


def metadata(
    chunks: Iterable[tuple[int, int, int]], message: schema.ChunkedMessage
) -> schema.ChunkMetadata:
    """Return the ChunkMetadata for (type, position, size) triples."""
    infos = [
        schema.ChunkInfo(type=kind, offset=position, size=size) for kind, position, size in chunks
    ]
    return schema.ChunkMetadata(version={"producer": 1}, chunks=infos, message=message)


def path(*steps: Step) -> list[schema.FieldIndex]:
    """Return field tags: numbers of fields, ("index", 3) for an element, ("key", "x") for one of a
    map.
    """
    tags = []
    for step in steps:
        if isinstance(step, int):
            tags.append(schema.FieldIndex(field=step))
        elif step[0] == "index":
            tags.append(schema.FieldIndex(index=step[1]))
        else:
            tags.append(schema.FieldIndex(map_key={"s": step[1]}))
    return tags
