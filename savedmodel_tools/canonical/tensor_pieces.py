"""Read a stored numeric tensor piece by piece, with only as much memory as one piece takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from reference_impl.errors import DtypeError
from reference_impl.format.bundle.checksum import PIECE
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.bundle.reader import BundleReader


def pieces(reader: BundleReader, key: str, size: int = PIECE) -> Iterator[bytes]:
    """Yield the row-major bytes of a numeric tensor, ``size`` at a time; the last piece may be
    shorter.

    Checksums are compared on the way, so an error appears only after the last piece of a part. A
    tensor in the other byte order, or partitioned along an axis other than the first, is read as a
    whole. Raises DtypeError for a tensor that is not numeric, SavedModelError as
    `BundleReader.read`.
    """
    entry = reader.entry(key)
    if entry.dtype.itemsize is None:
        raise DtypeError(
            f"a {entry.dtype.name} tensor is not a sequence of numbers",
            file=reader.prefix,
            node=key,
        )
    parts = _in_order(reader, key)
    if parts is None:
        source = _whole(reader, key, size)
    else:
        source = itertools.chain.from_iterable(
            reader.pieces(raw, part, size) for raw, part in parts
        )
    rest = b""
    for data in source:
        data = rest + data if rest else data
        stop = len(data) - len(data) % size
        yield from [data[start : start + size] for start in range(0, stop, size)]
        rest = data[stop:]
    if rest:
        yield rest


def _in_order(reader: BundleReader, key: str) -> Optional[list[tuple[bytes, Entry]]]:
    """Return the stored parts in an order that gives the tensor's bytes; None where there is no
    such order.
    """
    if not reader.is_native:
        return None
    parts, whole = reader.parts(key), reader.entry(key).shape
    if not all(_is_row_block(box, whole) for _, _, box in parts):
        return None
    return [(raw, part) for raw, part, _ in sorted(parts, key=lambda item: item[2][:1])]


def _is_row_block(box: Sequence[tuple[int, int]], shape: Sequence[int]) -> bool:
    """Return whether a part is cut along the first axis only."""
    return all(length == size for (_, length), size in zip(box[1:], shape[1:]))


def _whole(reader: BundleReader, key: str, size: int) -> Iterator[bytes]:
    import numpy as np

    flat: Any = np.ascontiguousarray(reader.read(key)).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, size):
        yield flat[start : start + size].tobytes()
