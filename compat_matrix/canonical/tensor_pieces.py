"""A stored tensor of numbers piece by piece: as much memory as a piece takes, whatever the tensor's size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from reference_impl.errors import DtypeError
from reference_impl.format.bundle import tensor_data
from reference_impl.format.bundle.checksum import PIECE, crc32c
from reference_impl.format.bundle.entry import Entry, shard_file
from reference_impl.format.bundle.reader import BundleReader, _check_crc, _Located


def pieces(reader: BundleReader, key: str, size: int = PIECE) -> Iterator[bytes]:
    """The bytes of a tensor of numbers as they are in memory, row-major, ``size`` at a time; the last piece may be shorter.

    Checksums are compared on the way, so what is wrong shows after the last piece of a part. A tensor in the other byte order, or
    partitioned along another than the first axis, is read as a whole.

    Args:
      reader: the bundle.
      key: one of its keys, not of strings or variants.
      size: bytes.

    Raises:
      DtypeError: no tensor of numbers.
      SavedModelError: what `BundleReader.read` raises.
    """
    raw = key.encode("utf-8", "surrogatepass")
    entry = reader.entry(key)
    if entry.dtype.itemsize is None:
        raise DtypeError(f"a {entry.dtype.name} tensor is no sequence of numbers", file=reader.prefix, node=key)
    parts = _in_order(reader, raw, entry)
    source = _stored(reader, parts, size) if parts is not None else _whole(reader, key, size)
    rest = b""
    for data in source:
        data = rest + data if rest else data
        stop = len(data) - len(data) % size
        yield from [data[start : start + size] for start in range(0, stop, size)]
        rest = data[stop:]
    if rest:
        yield rest


def _in_order(reader: BundleReader, raw: bytes, entry: Entry) -> Optional[list[tuple[bytes, Entry]]]:
    """The stored parts whose bytes one after the other are the tensor's; None where there is no such order."""
    if reader._order != tensor_data.NATIVE_ORDER:
        return None
    if not entry.slices:
        return [(raw, entry)]
    parts = reader._parts(raw, entry)
    if any(length != whole for _, _, box in parts for (_, length), whole in zip(box[1:], entry.shape[1:])):
        return None
    return [(key, part) for key, part, _ in sorted(parts, key=lambda item: item[2][:1])]


def _stored(reader: BundleReader, parts: list[tuple[bytes, Entry]], size: int) -> Iterator[bytes]:
    for raw, entry in parts:
        data, crc = reader._data(raw, entry), 0
        for start in range(0, len(data), size):
            piece = bytes(data[start : start + size])
            crc = crc32c(piece, crc)
            # Also a page that reaches over the piece's start, of which the last piece left the beginning.
            reader._release(entry, max(start - size, 0), start + len(piece))
            yield piece
        with _Located(raw, shard_file(reader.prefix, entry.shard, reader.num_shards)):
            _check_crc(crc, entry)


def _whole(reader: BundleReader, key: str, size: int) -> Iterator[bytes]:
    import numpy as np

    flat: Any = np.ascontiguousarray(reader.read(key)).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, size):
        yield flat[start : start + size].tobytes()
