"""Read a tensor bundle.

The empty key of the index holds the header; every other key holds the entry of one tensor.

A partitioned variable has an entry without bytes that lists its slices; each slice has an entry of
its own.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import mmap
import os
from collections import deque
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Optional, Union

from reference_impl.format import schema
from reference_impl.format.bundle import tensor_data
from reference_impl.format.bundle.checksum import PIECE, crc32c, crc32c_of_array, masked
from reference_impl.format.bundle.entry import (
    HEADER_KEY,
    VERSION,
    Entry,
    index_file,
    parse_entry,
    shard_file,
)
from reference_impl.format.bundle.slices import Box, check_cover, slice_key, to_box
from reference_impl.format.bundle.table import MAGIC, TableReader
from reference_impl.format.container.files import accessing, map_file, open_regular
from reference_impl.format.errors import (
    ChecksumError,
    CorruptTableError,
    MalformedError,
    MissingFileError,
    MissingKeyError,
    SavedModelError,
    SchemaVersionError,
    ShapeError,
    TruncatedError,
    V1CheckpointError,
    under_rule,
)
from reference_impl.format.names import OBJECT_GRAPH_KEY as OBJECT_GRAPH_KEY
from reference_impl.format.values.tensor_proto import object_array

if TYPE_CHECKING:
    import numpy.typing as npt

ALIGNMENT = 64  # bytes: the alignment that TensorFlow wants for a tensor's memory
_KEPT = 16 * PIECE  # bytes of a tensor that have been read and stay in memory


class BundleReader:
    """Reads one tensor bundle.

    Keys are strings; arrays are read-only and, for numbers, views of the memory-mapped shard.

    A view keeps its shard mapped after the reader is closed. Views may be unaligned, because
    tensors in a bundle are.

    Args:
      prefix: path without `.index` (`.../variables/variables`).

    Raises:
      MissingFileError: there is no index.
      V1CheckpointError: `prefix` itself is a checkpoint in the older format.
      SchemaVersionError: the bundle asks for a newer reader. CorruptTableError, TruncatedError,
        ChecksumError, MalformedError, UnsupportedError, LimitError: the index is damaged.
    """

    def __init__(self, prefix: Union[str, os.PathLike[str]]) -> None:
        self.prefix = os.fspath(prefix)
        self._index_file = index_file(self.prefix)
        self._shards: dict[int, Union[bytes, mmap.mmap]] = {}
        self._parsed: dict[bytes, Entry] = {}
        self._entries: Optional[dict[str, Entry]] = None
        self._private: dict[int, Union[bytes, mmap.mmap]] = {}
        self._taken: dict[
            int, list[tuple[int, int]]
        ] = {}  # ranges that `private_view` returned, by shard
        try:
            self._index = map_file(self._index_file)
        except MissingFileError:
            if _is_table(self.prefix):
                reason = (
                    "a checkpoint in format V1; only V2 is read. A Saver of TensorFlow restores it"
                    " and saves it as V2"
                )
                raise V1CheckpointError(reason, file=self.prefix, rule="SM-BUNDLE-22") from None
            raise
        try:
            self._table = TableReader(self._index, self._index_file)
            self._read_header()
        except BaseException:
            self.close()
            raise

    def _read_header(self) -> None:
        value = self._table.get(HEADER_KEY)
        if value is None:
            reason = "the index has no header"
            raise CorruptTableError(reason, file=self._index_file, rule="SM-BUNDLE-1")
        header = schema.parse(schema.BundleHeaderProto, value, self._index_file, "header")
        if header.version.min_consumer > VERSION or VERSION in header.version.bad_consumers:
            raise SchemaVersionError(
                "the bundle asks for another reader than version 1",
                file=self._index_file,
                node="header",
                rule="SM-BUNDLE-2",
            )
        if header.num_shards < 1:
            raise MalformedError(
                f"{header.num_shards} shards",
                file=self._index_file,
                node="header",
                rule="SM-BUNDLE-1",
            )
        if header.endianness not in (0, 1):
            raise MalformedError(
                f"endianness {header.endianness} is unknown",
                file=self._index_file,
                node="header",
                rule="SM-BUNDLE-3",
            )
        self.num_shards: int = header.num_shards
        self._order = ">" if header.endianness else "<"

    # Listing

    @functools.cached_property
    def _index_values(self) -> dict[bytes, bytes]:
        """Return the keys and values of the whole index except the header."""
        found = dict(self._table)
        found.pop(HEADER_KEY, None)
        return found

    def keys(self) -> list[str]:
        """Return every tensor's key, in the order of the index.

        The entries of slices are not keys.
        """
        if next(iter(self._index_values), b"").startswith(b"\0"):  # where the keys of slices begin
            return list(self.entries())
        return [self._decode(key) for key in self._index_values]

    def entries(self) -> Mapping[str, Entry]:
        """Return every tensor's entry by key; reads no data.

        Raises:
          DtypeError, ShapeError, MalformedError: an entry is invalid.
        """
        if self._entries is None:
            parsed = self.stored()
            parts: set[bytes] = set()
            for raw, entry in parsed.items():
                parts.update(slice_key(raw, part) for part in entry.slices)
            self._entries = {
                self._decode(raw): entry for raw, entry in parsed.items() if raw not in parts
            }
        return MappingProxyType(self._entries)

    def stored(self) -> dict[bytes, Entry]:
        """Return every entry by its key in the index, including entries of slices.

        Raises the errors of `entries`.
        """
        return {raw: self._lookup(raw) for raw in self._index_values}

    def entry(self, key: str) -> Entry:
        """Return the entry of one tensor. Raises MissingKeyError and the errors of `entries`."""
        return self._lookup(_raw(key))

    def __contains__(self, key: object) -> bool:
        try:
            return isinstance(key, str) and bool(self.entry(key))
        except MissingKeyError:
            return False

    def _lookup(self, raw: bytes) -> Entry:
        if raw not in self._parsed:
            value = self._index_values.get(raw)
            if value is None:
                raise MissingKeyError(
                    "the checkpoint has no such key", file=self._index_file, node=_shown(raw)
                )
            with _Located(raw, self._index_file):
                self._parsed[raw] = parse_entry(value, _shown(raw))
        return self._parsed[raw]

    def _decode(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedError(
                f"the key {raw!r} is neither UTF-8 nor a slice of a tensor",
                file=self._index_file,
                rule="SM-CONF-1",
            ) from None

    # Values

    def read(self, key: str, verify: bool = True) -> npt.NDArray[Any]:
        """Return the value of one tensor.

        Args:
          key: one of `keys()`.
          verify: compare checksums. If false, numbers are not even paged in.

        Returns:
          A read-only array. Numbers are a view of the shard, unless they are partitioned or in the
          other byte order. Strings and variants are `object` arrays of `bytes` (each variant is a
          serialised VariantTensorDataProto).

        Raises:
          MissingKeyError: there is no such tensor, or one of its slices is missing.
          MissingFileError, FileAccessError: the shard cannot be read.
          TruncatedError: the shard ends before the tensor does. ChecksumError, ShapeError,
            DtypeError, MalformedError, UnsupportedError: the value is damaged or cannot be
            represented.
        """
        entry = self.entry(key)
        array = (
            self._read_slices(key, entry, verify)
            if entry.slices
            else self._read_whole(_raw(key), entry, verify)
        )
        array.flags.writeable = False
        return array

    def is_plain(self, key: str) -> bool:
        """Return whether the stored bytes equal the tensor in memory: no strings, variants, slices,
        or foreign byte order.

        Raises MissingKeyError.
        """
        entry = self.entry(key)
        return not entry.slices and entry.dtype.itemsize is not None and self.is_native

    @property
    def is_native(self) -> bool:
        """Return whether numbers are stored in the byte order of this machine."""
        return self._order == tensor_data.NATIVE_ORDER

    def place(self, key: str) -> str:
        """Return the shard that has the bytes of a tensor, after checking that it has all of them.

        The tensor is not partitioned. Raises the errors of `read`, except ChecksumError.
        """
        entry = self.entry(key)
        self._data(_raw(key), entry)
        return shard_file(self.prefix, entry.shard, self.num_shards)

    def copy(self, key: str, target: npt.NDArray[Any]) -> None:
        """Copy the bytes of a plain tensor into a contiguous array of as many bytes, and verify the
        copy, in one pass.

        The pages of the file are released on the way, so that a tensor is not in memory twice.
        Several threads may copy different tensors at the same time, because NumPy copies without
        holding the GIL. Raises the errors of `read`.
        """
        import numpy as np

        raw, entry = _raw(key), self.entry(key)
        data = self._data(raw, entry)
        source = np.frombuffer(data, np.uint8) if data else target
        crc = 0
        for part in self._ranges(entry):
            target[part] = source[part]
            crc = crc32c_of_array(target[part], crc)
        with self._in_shard(raw, entry):
            _check_crc(crc, entry)

    def private_view(self, key: str) -> Optional[npt.NDArray[Any]]:
        """Return the bytes of a plain tensor in a mapping of its shard that is private and
        writable.

        Writing to the mapping changes neither the file nor the data of other processes. Nothing is
        read and no checksum is compared. The mapping lives as long as the array. Return None if the
        tensor does not begin at a multiple of `ALIGNMENT`, or shares bytes with a tensor that was
        already requested. Raises the errors of `read`, except ChecksumError.
        """
        import numpy as np

        raw, entry = _raw(key), self.entry(key)
        end = entry.offset + len(self._data(raw, entry))
        taken = self._taken.setdefault(entry.shard, [])
        place = bisect.bisect_right(taken, (entry.offset, end))
        is_free = (place == 0 or taken[place - 1][1] <= entry.offset) and (
            place == len(taken) or end <= taken[place][0]
        )
        if entry.offset % ALIGNMENT or entry.offset == end or not is_free:
            return None
        if entry.shard not in self._private:
            self._private[entry.shard] = map_file(
                shard_file(self.prefix, entry.shard, self.num_shards), private=True
            )
        taken.insert(place, (entry.offset, end))
        whole = self._private[entry.shard]
        if end > len(whole):
            raise TruncatedError(
                f"the shard has shrunk to {len(whole)} bytes", file=self.prefix, node=key
            )
        return np.frombuffer(whole, np.uint8, entry.size, entry.offset)

    def pieces(self, raw: bytes, entry: Entry, size: int = PIECE) -> Iterator[bytes]:
        """Yield the bytes of a stored tensor of numbers in pieces of `size`, then compare their
        checksum.

        `raw` and `entry` are an item of `stored` or `parts` that is not partitioned itself. Raises
        the errors of `read`.
        """
        data = self._data(raw, entry)
        starts = range(0, len(data), size)
        crc = 0
        for piece in (
            (bytes(data[at : at + size]) for at in starts)
            if len(data) <= PIECE
            else self._read_pieces(raw, entry, size)
        ):
            crc = crc32c(piece, crc)
            yield piece
        with self._in_shard(raw, entry):
            _check_crc(crc, entry)

    def _read_pieces(self, raw: bytes, entry: Entry, size: int) -> Iterator[bytes]:
        """Yield the pieces from the file itself: faster than the faults of a mapping, and the holes
        of a file stay holes.
        """
        file = shard_file(self.prefix, entry.shard, self.num_shards)
        with open_regular(file) as stream, accessing(file):
            stream.seek(entry.offset)
            for start in range(0, entry.size, size):
                length = min(size, entry.size - start)
                piece = stream.read(length)
                if len(piece) < length:
                    raise TruncatedError(
                        "the shard has shrunk while it was read", file=file, node=_shown(raw)
                    )
                yield piece

    def _ranges(self, entry: Entry) -> Iterator[slice]:
        """Yield the ranges of the pieces of an entry.

        The pages of those that have been read are released on the way.
        """
        released = 0
        for start in range(0, entry.size, PIECE):
            yield slice(start, start + PIECE)
            if start - released >= _KEPT:
                self._release(
                    entry, max(released - mmap.PAGESIZE, 0), start
                )  # also the page across the last border
                released = start
        self._release(entry, max(released - mmap.PAGESIZE, 0), entry.size)

    def _release(self, entry: Entry, begin: int, end: int) -> None:
        """Release the pages of bytes that were read into memory; views stay valid."""
        data = self._shards.get(entry.shard)
        if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            start = -(-(entry.offset + begin) // mmap.PAGESIZE) * mmap.PAGESIZE
            length = (entry.offset + end) // mmap.PAGESIZE * mmap.PAGESIZE - start
            if length > 0:
                data.madvise(mmap.MADV_DONTNEED, start, length)

    def verify(self, key: str) -> None:
        """Verify a tensor without making an array. Raises the errors of `read`."""
        for raw, part, _ in self.parts(key):
            self._verify_whole(raw, part)

    def parts(self, key: str) -> list[tuple[bytes, Entry, Box]]:
        """Return the key, entry and position of each stored part of a tensor: the tensor itself, or
        its verified slices.

        Raises the errors of `read`.
        """
        raw, entry = _raw(key), self.entry(key)
        return (
            self._parts(raw, entry)
            if entry.slices
            else [(raw, entry, tuple([(0, size) for size in entry.shape]))]
        )

    def check_places(self) -> None:
        """Check that every tensor lies within its shard, without reading data: for callers whose
        data is read by another program.

        Raises the errors of `read`, and those of a damaged index.
        """
        for raw, entry in self.stored().items():
            if entry.slices:
                self._parts(raw, entry)
            else:
                self._data(raw, entry)

    def verify_all(self) -> None:
        """Verify every tensor in the order of the data.

        Raises the first error, or MalformedError if tensors share bytes.
        """
        shard, end = -1, 0
        for raw, entry in sorted(
            self.stored().items(), key=lambda item: (item[1].shard, item[1].offset)
        ):
            if entry.slices:
                self._parts(raw, entry)
                continue
            if entry.shard == shard and entry.offset < end and entry.size:
                raise MalformedError(
                    "the tensor shares its bytes with another",
                    file=self._index_file,
                    node=_shown(raw),
                    rule="SM-BUNDLE-10",
                )
            shard, end = entry.shard, entry.offset + entry.size
            self._verify_whole(raw, entry)
            self._release(entry, 0, entry.size)

    def object_graph(self) -> Any:
        """Return the TrackableObjectGraph of an object-based checkpoint.

        Raises MissingKeyError for a name-based checkpoint.
        """
        raw, entry = _raw(OBJECT_GRAPH_KEY), self.entry(OBJECT_GRAPH_KEY)
        if entry.shape or entry.dtype.name != "string" or entry.slices:
            raise ShapeError(
                "the object graph is not a string scalar",
                file=self._index_file,
                node=OBJECT_GRAPH_KEY,
                rule="SM-KEY-4",
            )
        data = self._data(raw, entry)
        with self._in_shard(raw, entry):
            # `read` is not used here, because listing a model should not import NumPy.
            (value,), crc = tensor_data.decode_elements(data, entry.dtype, 1, self._order, True)
            _check_crc(crc, entry)
        return schema.parse(schema.TrackableObjectGraph, value, self.prefix, OBJECT_GRAPH_KEY)

    def _in_shard(self, raw: bytes, entry: Entry) -> _Located:
        return _Located(raw, shard_file(self.prefix, entry.shard, self.num_shards))

    def _data(self, raw: bytes, entry: Entry) -> memoryview:
        """Return the bytes of an entry; check that they lie within the shard."""
        if not 0 <= entry.shard < self.num_shards:
            raise MalformedError(
                f"shard {entry.shard} of a checkpoint with {self.num_shards}",
                file=self._index_file,
                node=_shown(raw),
                rule="SM-BUNDLE-5",
            )
        file = shard_file(self.prefix, entry.shard, self.num_shards)
        if entry.shard not in self._shards:
            with under_rule("SM-BUNDLE-5"):
                self._shards[entry.shard] = map_file(file)
        data = self._shards[entry.shard]
        if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > len(data):
            raise TruncatedError(
                f"{entry.size} bytes at {entry.offset} are not within the shard's {len(data)}",
                file=file,
                node=_shown(raw),
                rule="SM-BUNDLE-5",
            )
        return memoryview(data)[entry.offset : entry.offset + entry.size]

    def _read_whole(self, raw: bytes, entry: Entry, verify: bool) -> npt.NDArray[Any]:
        data = self._data(raw, entry)
        with self._in_shard(raw, entry):
            if entry.dtype.itemsize is None:
                items, crc = tensor_data.decode_elements(
                    data, entry.dtype, entry.elements, self._order, verify
                )
                array = tensor_data.reshaped(object_array(list(items)), entry.shape)
            else:
                array = tensor_data.decode_numbers(data, entry.dtype, entry.shape, self._order)
                crc = crc32c(data) if verify else 0
            if verify:
                _check_crc(crc, entry)
            return array

    def _verify_whole(self, raw: bytes, entry: Entry) -> None:
        if entry.dtype.itemsize is not None:
            deque(self.pieces(raw, entry), maxlen=0)
            return
        data = self._data(raw, entry)
        with self._in_shard(raw, entry):
            _, crc = tensor_data.decode_elements(
                data, entry.dtype, entry.elements, self._order, True
            )
            _check_crc(crc, entry)

    def _parts(self, raw: bytes, entry: Entry) -> list[tuple[bytes, Entry, Box]]:
        """Return the key, entry and position of every slice of a partitioned tensor; check that the
        slices cover it.
        """
        found = []
        with _Located(raw, self._index_file):
            for part in entry.slices:
                with under_rule("SM-BUNDLE-18"):
                    box = to_box(part, entry.shape)
                part_key = slice_key(raw, part)
                try:
                    part_entry = self._lookup(part_key)
                except MissingKeyError:
                    reason = f"the slice {part} has no entry"
                    raise MissingKeyError(reason, rule="SM-BUNDLE-19") from None
                lengths = tuple([length for _, length in box])
                if part_entry.slices:
                    reason = f"the slice {part} itself consists of slices"
                    raise ShapeError(reason, rule="SM-BUNDLE-19")
                if part_entry.dtype != entry.dtype or part_entry.shape != lengths:
                    raise ShapeError(
                        f"the slice {part} is {part_entry.dtype.name}{part_entry.shape}, not"
                        f" {entry.dtype.name}{lengths}",
                        rule="SM-BUNDLE-19",
                    )
                found.append((part_key, part_entry, box))
            with under_rule("SM-BUNDLE-17"):
                check_cover([box for _, _, box in found], entry.shape)
            total = sum(len(self._data(part_key, part)) for part_key, part, _ in found)
            # With slices that share bytes, a small file could claim a huge array.
            if total > sum(len(data) for data in self._shards.values()):
                raise MalformedError("the slices of the tensor share bytes", rule="SM-BUNDLE-10")
        return found

    def _read_slices(self, key: str, entry: Entry, verify: bool) -> npt.NDArray[Any]:
        import numpy as np

        parts = self.parts(key)
        with _Located(_raw(key), self._index_file):
            whole = tensor_data.reshaped(np.empty(entry.elements, entry.dtype.numpy()), entry.shape)
        for raw, part, box in parts:
            # The ellipsis returns an array for a scalar as well.
            place: Any = (*(slice(start, start + length) for start, length in box), ...)
            whole[place] = self._read_whole(raw, part, verify)
        return whole

    # Lifetime

    def close(self) -> None:
        """Unmap the files. A shard stays mapped while arrays view it."""
        for data in (self._index, *self._shards.values()):
            if isinstance(data, mmap.mmap):
                with contextlib.suppress(BufferError):  # views exist
                    data.close()
        self._shards.clear()
        self._private.clear()

    def __enter__(self) -> BundleReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Located:
    """Add key and file to errors from lower layers.

    This runs for every entry, where a generator would be slower.
    """

    def __init__(self, raw: bytes, file: str) -> None:
        self._raw, self._file = raw, file

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: Optional[BaseException], __: object) -> None:
        if isinstance(error, SavedModelError):
            error.file, error.node = error.file or self._file, error.node or _shown(self._raw)


def _check_crc(crc: int, entry: Entry) -> None:
    if masked(crc) != entry.crc32c:
        raise ChecksumError(
            f"the checksum is {masked(crc):#010x}, the index says {entry.crc32c:#010x}",
            rule="SM-BUNDLE-7",
        )


def _raw(key: str) -> bytes:
    """Return a key as the index stores it."""
    return key.encode("utf-8", "surrogatepass")


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _is_table(path: str) -> bool:
    try:
        data = map_file(path)
    except SavedModelError:
        return False
    return data[-8:] == MAGIC.to_bytes(8, "little")
