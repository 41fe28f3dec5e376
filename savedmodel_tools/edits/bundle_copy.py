"""Copies of a tensor bundle without some of its tensors, or with other strings in place of one:
bytes that stay are not decoded.

An unchanged shard is the same file (a hard link, if possible). Other shards are streamed, so memory
does not grow with the weights. Order, shards, byte order and checksums stay.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Optional, Union

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.bundle.entry import HEADER_KEY, Entry, index_file, shard_file
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.slices import slice_key
from reference_impl.format.bundle.table import TableReader, TableWriter
from reference_impl.format.container import files
from reference_impl.format.container.files import map_file, open_regular

_PIECE = 1 << 20
Place = tuple[int, int, int]  # offset, size and checksum of a tensor in its shard


def copy_bundle(
    source: Union[str, os.PathLike[str]],
    target: Union[str, os.PathLike[str]],
    drop: Collection[str] = (),
    replace: Mapping[str, bytes] = {},
) -> None:
    """Write the bundle with the prefix `source` under the prefix `target`, whose folder exists.

    Args:
      drop: keys to leave out; of a partitioned tensor all slices go.
      replace: new content of string scalars.

    Raises:
      MissingKeyError, DtypeError: there is no such key; a tensor to be replaced is not a string
        scalar.
      FileAccessError: the file system refuses. Files that were written stay; the index is written
        last.
      SavedModelError: the bundle is damaged, or tensors share bytes.
    """
    with BundleReader(source) as reader:
        gone, new = _changes(reader, drop, replace)
        places: dict[bytes, Place] = {}
        for old, kept, changed in _shards(reader, gone, new):
            out = Path(os.fspath(target) + old.name[len(Path(reader.prefix).name) :])
            try:
                if changed:
                    with open_regular(old) as stream, out.open("xb") as sink:
                        places.update(_shard(old, stream, sink, kept, new))
                else:
                    _same(old, out)
            except OSError as error:
                raise files.access_error(error, error.filename or out) from error
    try:
        with open(index_file(os.fspath(target)), "xb") as index:  # noqa: PTH123
            _index(reader.prefix, index, gone, places)
    except OSError as error:
        raise files.access_error(error, index_file(os.fspath(target))) from error


def copied_size(
    source: Union[str, os.PathLike[str]],
    drop: Collection[str] = (),
    replace: Mapping[str, bytes] = {},
) -> int:
    """Return the bytes of the files that :func:`copy_bundle` would write, without reading a tensor.

    Raises what it raises.
    """
    total, places = 0, {}
    with BundleReader(source) as reader:
        gone, new = _changes(reader, drop, replace)
        for old, kept, changed in _shards(reader, gone, new):
            if changed:
                sink = _Counter()
                places.update(_shard(old, None, sink, kept, new))
                total += sink.tell()
            else:
                total += old.stat().st_size
    index = io.BytesIO()
    _index(reader.prefix, index, gone, places)
    return total + index.tell()


class _Counter:
    """A file that keeps nothing but its length."""

    def __init__(self) -> None:
        self._length = 0

    def write(self, data: bytes) -> int:
        return self.skip(len(data))

    def skip(self, size: int) -> int:
        self._length += size
        return size

    def tell(self) -> int:
        return self._length


def _changes(
    reader: BundleReader, drop: Collection[str], replace: Mapping[str, bytes]
) -> tuple[set[bytes], dict[bytes, bytes]]:
    """The keys that go, slices included, and the new contents by key."""
    reader.check_places()
    for key in replace:
        entry = reader.entry(key)
        if entry.dtype.name != "string" or entry.shape or entry.slices:
            raise errors.DtypeError("no string scalar", file=index_file(reader.prefix), node=key)
    return _gone(reader, drop), {key.encode(): content for key, content in replace.items()}


def _shards(
    reader: BundleReader, gone: set[bytes], new: Mapping[bytes, bytes]
) -> Iterator[tuple[Path, list[tuple[bytes, Entry]], bool]]:
    """Each shard: its file, the tensors that stay, and whether anything in it changes."""
    stored = reader.stored()
    for shard in range(reader.num_shards):
        mine = {
            raw: entry for raw, entry in stored.items() if not entry.slices and entry.shard == shard
        }
        old = Path(shard_file(reader.prefix, shard, reader.num_shards))
        changed = bool(mine.keys() & (gone | new.keys()))
        if changed or mine or old.exists():
            yield old, [(raw, entry) for raw, entry in mine.items() if raw not in gone], changed


def _gone(reader: BundleReader, drop: Collection[str]) -> set[bytes]:
    gone = set()
    for key in drop:
        raw = key.encode("utf-8", "surrogatepass")
        gone.add(raw)
        gone.update(slice_key(raw, part) for part in reader.entry(key).slices)
    return gone


def _same(old: Path, out: Path) -> None:
    try:
        os.link(os.path.realpath(old), out)
    except OSError:
        shutil.copyfile(old, out)


def _shard(
    old: Path,
    source: Optional[BinaryIO],
    sink: Any,
    kept: list[tuple[bytes, Entry]],
    new: Mapping[bytes, bytes],
) -> dict[bytes, Place]:
    """Write what stays of a shard in its order. Without a ``source`` the ``sink`` only counts."""
    places: dict[bytes, Place] = {}
    end = 0
    for raw, entry in sorted(kept, key=lambda item: item[1].offset):
        if entry.size and entry.offset < end:
            raise errors.MalformedError(
                "the tensor shares its bytes with another",
                file=old,
                node=raw.decode(errors="replace"),
            )
        end = max(end, entry.offset + entry.size)
        start = sink.tell()
        if raw in new:
            size, crc = _string(sink, new[raw])
        else:
            size, crc = entry.size, entry.crc32c
            if source is None:
                sink.skip(size)
            else:
                _stream(source, sink, entry.offset, size)
        places[raw] = start, size, crc
    return places


def _string(sink: BinaryIO, content: bytes) -> tuple[int, int]:
    import numpy as np

    from reference_impl.format.bundle import tensor_data
    from reference_impl.format.values import dtypes

    array = np.empty((), dtype=object)
    array[()] = content
    return tensor_data.encode(sink, array, dtypes.by_name("string"))


def _stream(source: BinaryIO, sink: BinaryIO, offset: int, size: int) -> None:
    source.seek(offset)
    while size:
        piece = source.read(min(size, _PIECE))
        if not piece:
            raise errors.TruncatedError(
                "the shard became shorter while it was read", file=source.name
            )
        sink.write(piece)
        size -= len(piece)


def _index(
    old: str, stream: BinaryIO, gone: Collection[bytes], places: Mapping[bytes, Place]
) -> None:
    """Write the index: entries as they were, but for what is gone or has moved."""
    writer = TableWriter(stream)
    for raw, value in TableReader(map_file(index_file(old)), index_file(old)):
        if raw in gone and raw != HEADER_KEY:
            continue
        if raw in places:
            entry = schema.parse(schema.BundleEntryProto, value)
            entry.offset, entry.size, entry.crc32c = places[raw]
            value = schema.serialize(entry)
        writer.add(raw, value)
    writer.finish()
