"""Copies of a tensor bundle without some of its tensors, or with other strings in place of one: bytes that stay are not decoded.

A shard of which nothing changes is the same file (a hard link, where the system can), any other is streamed, so memory does not
grow with the weights. Order, shards, byte order and checksums stay.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import BinaryIO, Union

from . import errors, files, schema
from .bundle import BundleReader
from .bundle_entry import HEADER_KEY, Entry, index_file, shard_file
from .mapped import map_file
from .slices import slice_key
from .sstable import TableReader, TableWriter

_PIECE = 1 << 20


def copy_bundle(
    source: Union[str, os.PathLike[str]],
    target: Union[str, os.PathLike[str]],
    drop: Collection[str] = (),
    replace: Mapping[str, bytes] = {},
) -> None:
    """Write the bundle `source` as `target`, whose folder exists.

    Args:
      source, target: prefixes.
      drop: keys to leave out; of a partitioned tensor all slices go.
      replace: new content of string scalars.

    Raises:
      MissingKeyError: there is no such key.
      DtypeError: what is to be replaced is no string scalar.
      MalformedError: tensors share bytes.
      FileAccessError: the file system refuses. What has been written stays, the index comes last.
      SavedModelError: the bundle is damaged.
    """
    with BundleReader(source) as reader:
        reader.check_places()
        stored = reader.stored()
        gone = _gone(reader, drop)
        for key in replace:
            entry = reader.entry(key)
            if entry.dtype.name != "string" or entry.shape or entry.slices:
                raise errors.DtypeError("no string scalar", file=index_file(os.fspath(source)), node=key)
        new = {key.encode(): content for key, content in replace.items()}
        places: dict[bytes, tuple[int, int, int]] = {}
        for shard in range(reader.num_shards):
            mine = {raw: entry for raw, entry in stored.items() if not entry.slices and entry.shard == shard}
            old = Path(shard_file(reader.prefix, shard, reader.num_shards))
            out = Path(shard_file(os.fspath(target), shard, reader.num_shards))
            try:
                if mine.keys() & (gone | new.keys()):
                    kept = [(raw, entry) for raw, entry in mine.items() if raw not in gone]
                    places.update(_shard(old, out, kept, new))
                elif mine or old.exists():
                    _same(old, out)
            except OSError as error:
                raise files.access_error(error, error.filename or out) from error
    _index(reader.prefix, os.fspath(target), gone, places)


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
    old: Path, out: Path, kept: list[tuple[bytes, Entry]], new: Mapping[bytes, bytes]
) -> dict[bytes, tuple[int, int, int]]:
    """Write what stays of a shard in its order; (offset, size, checksum) of each tensor."""
    places: dict[bytes, tuple[int, int, int]] = {}
    end = 0
    with old.open("rb") as source, out.open("xb") as sink:
        for raw, entry in sorted(kept, key=lambda item: item[1].offset):
            if entry.size and entry.offset < end:
                raise errors.MalformedError(
                    "the tensor shares its bytes with another", file=old, node=raw.decode(errors="replace")
                )
            end = max(end, entry.offset + entry.size)
            start = sink.tell()
            if raw in new:
                size, crc = _string(sink, new[raw])
            else:
                size, crc = entry.size, entry.crc32c
                _stream(source, sink, entry.offset, size)
            places[raw] = start, size, crc
    return places


def _string(sink: BinaryIO, content: bytes) -> tuple[int, int]:
    import numpy as np

    from . import dtypes, tensor_data

    array = np.empty((), dtype=object)
    array[()] = content
    return tensor_data.encode(sink, array, dtypes.by_name("string"))


def _stream(source: BinaryIO, sink: BinaryIO, offset: int, size: int) -> None:
    source.seek(offset)
    while size:
        piece = source.read(min(size, _PIECE))
        if not piece:
            raise errors.TruncatedError("the shard became shorter while it was read", file=source.name)
        sink.write(piece)
        size -= len(piece)


def _index(old: str, new: str, gone: Collection[bytes], places: Mapping[bytes, tuple[int, int, int]]) -> None:
    """The index: entries as they were, but for what is gone or has moved."""
    table = TableReader(map_file(index_file(old)), index_file(old))
    try:
        with open(index_file(new), "xb") as stream:  # noqa: PTH123
            writer = TableWriter(stream)
            for raw, value in table:
                if raw in gone and raw != HEADER_KEY:
                    continue
                if raw in places:
                    entry = schema.parse(schema.BundleEntryProto, value)
                    entry.offset, entry.size, entry.crc32c = places[raw]
                    value = schema.serialize(entry)
                writer.add(raw, value)
            writer.finish()
    except OSError as error:
        raise files.access_error(error, index_file(new)) from error
