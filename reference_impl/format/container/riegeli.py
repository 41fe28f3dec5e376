"""Record files, the container of the split format: read only, simple chunks.

The file is cut into blocks of 64 KiB. Each block starts with a header of 24 bytes, which may fall
inside a chunk. The bytes between these headers are a sequence of chunks. A chunk is a header of 40
bytes and data: many records, compressed together. The position of a record is the offset of its
chunk plus its index in the chunk.
"""

from __future__ import annotations

import bisect
import struct
from typing import NamedTuple

from reference_impl.format import errors, limits
from reference_impl.format.container import files
from reference_impl.format.container.highwayhash import highwayhash64
from reference_impl.format.wire import cut, read_varint, read_varints

_BLOCK, _BLOCK_HEADER, _CHUNK_HEADER = 1 << 16, 24, 40
_USABLE = _BLOCK - _BLOCK_HEADER
_HASH_KEY = struct.unpack("<4Q", b"Riegeli/records\n" * 2)
_SIGNATURE, _SIMPLE, _TRANSPOSED, _METADATA, _PADDING = b"srtmp"
_COMPRESSIONS = {ord("b"): "brotli", ord("z"): "zstd", ord("s"): "snappy"}
_WIDEST_VARINT = 10


class _Chunk(NamedTuple):
    begin: int
    kind: int
    data_size: int
    data_hash: int
    num_records: int
    decoded_size: int


class RecordFile:
    """A record file, mapped into memory; records are decoded on demand.

    Raises:
      MissingFileError, FileAccessError, LimitError.
      SplitFileError: the file is not a record file, or its chunks do not fit together.
      TruncatedError, ChecksumError: headers are checked at once, data when it is read.
    """

    def __init__(self, path: files.AnyPath) -> None:
        self.path = path
        self._map = files.map_file(path, "SPLIT_FILE_BYTES")
        self._chunks = [chunk for chunk in self._scan() if chunk.num_records]
        self._begins = [chunk.begin for chunk in self._chunks]
        self._decoded: tuple[int, list[memoryview]] = (-1, [])
        self._hashed = 0

    def record(self, position: int) -> memoryview:
        """Return the record at a position. Raises SplitFileError if there is none."""
        index = bisect.bisect_right(self._begins, position) - 1
        if index < 0 or position - self._begins[index] >= self._chunks[index].num_records:
            raise errors.SplitFileError(f"no record at position {position}", file=self.path)
        return self._records(index)[position - self._begins[index]]

    def last(self) -> memoryview:
        """Return the last record. Raises SplitFileError if the file has no records."""
        if not self._chunks:
            raise errors.SplitFileError("the file holds no record", file=self.path)
        return self._records(len(self._chunks) - 1)[-1]

    def _scan(self) -> list[_Chunk]:
        chunks: list[_Chunk] = []
        position = records = unpacked = 0
        while position < len(self._map):
            chunk = self._chunk_header(position)
            if not chunks and (chunk.kind, chunk.data_size, chunk.num_records) != (
                _SIGNATURE,
                0,
                0,
            ):
                raise errors.SplitFileError(_NOT_RECORDS, file=self.path, rule="SM-SPLIT-1")
            chunks.append(chunk)
            records += chunk.num_records
            unpacked += chunk.decoded_size
            if records > limits.SPLIT_CHUNKS or len(chunks) > limits.SPLIT_CHUNKS:
                raise self._limit(f"more than {limits.SPLIT_CHUNKS} records", "SPLIT_CHUNKS")
            if unpacked > limits.SPLIT_UNPACKED_BYTES:
                raise self._limit(
                    f"unpacks to {unpacked} bytes, limit {limits.SPLIT_UNPACKED_BYTES}",
                    "SPLIT_UNPACKED_BYTES",
                )
            position = _chunk_end(chunk)
        if not chunks:
            raise errors.SplitFileError(_NOT_RECORDS, file=self.path, rule="SM-SPLIT-1")
        return chunks

    def _limit(self, reason: str, name: str) -> errors.LimitError:
        return errors.LimitError(reason, file=self.path, limit=name, rule="SM-SPLIT-2")

    def _chunk_header(self, begin: int) -> _Chunk:
        header = self._bytes(begin, 0, _CHUNK_HEADER)
        header_hash, data_size, data_hash, kind_and_records, decoded_size = struct.unpack(
            "<5Q", header
        )
        if highwayhash64(_HASH_KEY, header[8:]) != header_hash:
            if begin == 0:
                raise errors.SplitFileError(_NOT_RECORDS, file=self.path, rule="SM-SPLIT-1")
            raise errors.ChecksumError(
                "the header of a chunk is damaged",
                file=self.path,
                node=f"chunk at {begin}",
                rule="SM-SPLIT-1",
            )
        chunk = _Chunk(
            begin,
            kind_and_records & 0xFF,
            data_size,
            data_hash,
            kind_and_records >> 8,
            decoded_size,
        )
        if chunk.kind not in (_SIGNATURE, _SIMPLE, _TRANSPOSED, _METADATA, _PADDING):
            raise errors.UnsupportedError(
                f"a chunk of type {chunk.kind:#x}",
                file=self.path,
                node=f"chunk at {begin}",
                rule="SM-SPLIT-3",
            )
        return chunk

    def _bytes(self, begin: int, start: int, length: int) -> bytes:
        """Return `length` bytes of a chunk from its byte `start`, without the block headers between
        them.
        """
        logical = _logical(begin) + start
        pieces = []
        left = length
        while left > 0:
            position = _physical(logical)
            piece = self._map[position : position + min(left, _BLOCK - position % _BLOCK)]
            if not piece:
                reason = f"{left} bytes are missing"
                raise errors.TruncatedError(reason, file=self.path, node=f"chunk at {begin}")
            pieces.append(piece)
            logical += len(piece)
            left -= len(piece)
            if left > len(self._map):  # before looping over millions of records
                raise errors.TruncatedError(
                    f"{left} bytes are missing", file=self.path, node=f"chunk at {begin}"
                )
        return b"".join(pieces)

    def _records(self, index: int) -> list[memoryview]:
        if self._decoded[0] != index:
            self._decoded = (-1, [])  # the old ones may be large
            self._decoded = (index, self._decode(self._chunks[index]))
        return self._decoded[1]

    def _decode(self, chunk: _Chunk) -> list[memoryview]:
        node = f"chunk at {chunk.begin}"
        if chunk.kind == _TRANSPOSED:
            raise errors.UnsupportedError(
                "records are stored transposed", file=self.path, node=node, rule="SM-SPLIT-3"
            )
        if chunk.kind != _SIMPLE:
            raise errors.SplitFileError(
                f"a chunk of type {chunk.kind:#x} cannot hold records", file=self.path, node=node
            )
        data = self._bytes(chunk.begin, _CHUNK_HEADER, chunk.data_size)
        if self._hashed + len(data) <= limits.SPLIT_CHECKSUM_BYTES:
            self._hashed += len(data)
            if highwayhash64(_HASH_KEY, data) != chunk.data_hash:
                raise errors.ChecksumError(
                    "the data of a chunk are damaged", file=self.path, node=node
                )
        try:
            return _split(data, chunk)
        except ValueError as error:
            raise errors.SplitFileError(str(error), file=self.path, node=node) from error
        except _UnknownCompression as error:
            raise errors.UnsupportedError(
                str(error), file=self.path, node=node, rule="SM-SPLIT-3"
            ) from error
        except ImportError as error:
            compression = _COMPRESSIONS[data[0]]
            raise errors.MissingPackageError(
                compression, "cramjam", file=self.path, node=node, rule="SM-SPLIT-3"
            ) from error


_NOT_RECORDS = "not a record file"


class _UnknownCompression(Exception):
    pass


def _split(data: bytes, chunk: _Chunk) -> list[memoryview]:
    """Return the records of a simple chunk: compression, then their sizes, then their bytes.

    Raises ValueError.
    """
    if not data:
        raise ValueError("a chunk with records has no data")
    sizes_length, position = read_varint(data, 1, len(data))
    if sizes_length > len(data) - position:
        raise ValueError("the sizes of the records run over the end of the chunk")
    view = memoryview(data)
    sizes = _unpack(
        view[position : position + sizes_length], data[0], chunk.num_records * _WIDEST_VARINT
    )
    values = _unpack(view[position + sizes_length :], data[0], chunk.decoded_size)
    lengths, position = read_varints(sizes, chunk.num_records)
    if sum(lengths) > len(values):
        raise ValueError("the sizes of the records exceed their bytes")
    if sum(lengths) != len(values) or position != len(sizes):
        raise ValueError("the sizes of the records do not add up to their bytes")
    return list(cut(values, lengths, 0))


def _unpack(packed: memoryview, compression: int, limit: int) -> memoryview:
    """Unpack a compressed section, which starts with the size of its content. Raises ValueError."""
    if compression == 0:
        return packed
    if compression not in _COMPRESSIONS:
        raise _UnknownCompression(f"compression {compression:#x}")
    import cramjam

    size, start = read_varint(packed, 0, len(packed))
    if size > limit:
        raise ValueError(f"{size} bytes are promised where {limit} can be")
    name = _COMPRESSIONS[compression]
    codec = getattr(cramjam, name)
    unpack = codec.decompress_raw_into if name == "snappy" else codec.decompress_into
    out = bytearray(size)
    try:
        written = unpack(bytes(packed[start:]), out)
    except (cramjam.DecompressionError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error
    if written != size:
        raise ValueError(f"{name} gives {written} bytes, {size} were promised")
    return memoryview(out)


def _logical(position: int) -> int:
    """Count the bytes before a position that are not block headers.

    A chunk that begins at a block begins after its header.
    """
    return position // _BLOCK * _USABLE + max(0, position % _BLOCK - _BLOCK_HEADER)


def _physical(logical: int) -> int:
    return logical // _USABLE * _BLOCK + _BLOCK_HEADER + logical % _USABLE


def _chunk_end(chunk: _Chunk) -> int:
    """Return where the next chunk begins.

    Every record has a position, so a chunk has at least as many bytes as records.
    """
    end = _physical(_logical(chunk.begin) + _CHUNK_HEADER + chunk.data_size - 1) + 1
    padded = chunk.begin + chunk.num_records
    if 0 < padded % _BLOCK < _BLOCK_HEADER:
        padded += _BLOCK_HEADER - padded % _BLOCK
    return max(end, padded)
