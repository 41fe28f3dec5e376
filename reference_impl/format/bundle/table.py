"""The sorted table of blocks that holds the index of a tensor bundle (a LevelDB table as TensorFlow
writes it).

    data block ... data block | metaindex block | index block | footer (48 bytes)

Each block is followed by one byte for its compression and by the masked CRC-32C of the block and
that byte. Inside a block, entries leave out the prefix that they share with the previous key; every
16th entry (a "restart") is complete. The block ends with the offsets of the restarts and their
number. For each data block, the index block maps a key not below the block's last key to the
block's handle (offset, size). The metaindex block is empty.
"""

from __future__ import annotations

import bisect
import mmap
import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Optional, Union

from reference_impl.format import limits
from reference_impl.format.bundle.checksum import crc32c, masked, masked_crc32c
from reference_impl.format.errors import (
    ChecksumError,
    CorruptTableError,
    DuplicateKeyError,
    LimitError,
    MissingPackageError,
    TruncatedError,
    UnsupportedError,
)
from reference_impl.format.wire import read_varint, write_varint

MAGIC = 0xDB4775248B80FB57
FOOTER_BYTES = 48
_HANDLES_BYTES = 40
_TRAILER = struct.Struct("<BI")
_UNCOMPRESSED, _SNAPPY = 0, 1
# A Snappy element needs at least 3 bytes for 64 bytes of output.
_SNAPPY_MAX_RATIO = 22
# Fewer bytes of keys than this are not held to limits.TABLE_KEYS_RATIO, which is meaningless for a
# handful of keys.
_KEYS_FREE_BYTES = 64 << 10
_NOT_ANNOUNCED = "the keys are not those the index block announces"

Name = Union[str, "os.PathLike[str]"]


class _Handle(NamedTuple):
    offset: int
    size: int


class TableReader:
    """Reads a table from the bytes of its file, usually a memory map; holds one block in memory at
    a time.

    Raises:
      TruncatedError: the file is shorter than a footer, or a block ends after the file.
        CorruptTableError, ChecksumError, UnsupportedError, LimitError: see the methods; the
        constructor reads index and metaindex.
    """

    def __init__(self, data: Union[bytes, mmap.mmap], file: Name) -> None:
        self._data = data
        self._file = os.fspath(file)
        if len(data) < FOOTER_BYTES:
            raise TruncatedError(
                f"a table needs at least {FOOTER_BYTES} bytes, there are {len(data)}",
                file=file,
                rule="SM-TABLE-1",
            )
        self._end = len(data) - FOOTER_BYTES
        footer = data[self._end :]
        if struct.unpack_from("<Q", footer, _HANDLES_BYTES)[0] != MAGIC:
            raise CorruptTableError(
                "the footer does not end with the magic number of a table",
                file=file,
                node="footer",
                rule="SM-TABLE-1",
            )
        metaindex, position = self._handle(footer, 0, _HANDLES_BYTES, "footer")
        index, _ = self._handle(footer, position, _HANDLES_BYTES, "footer")
        self._read_block(metaindex, "metaindex block")
        self._separators: list[bytes] = []
        self._handles: list[_Handle] = []
        self._read_index(index)

    def _read_index(self, index: _Handle) -> None:
        end = 0
        for key, value in self._entries(self._read_block(index, "index block"), "index block"):
            if self._separators and key <= self._separators[-1]:
                reason = "the keys of the index block are not sorted"
                raise self._corrupt(reason, "index block", "SM-BLOCK-4")
            handle, position = self._handle(value, 0, len(value), "index block")
            if handle.offset < end or position != len(value):
                reason = "data blocks overlap or are out of order"
                raise self._corrupt(reason, "index block", "SM-BLOCK-4")
            end = handle.offset + handle.size + _TRAILER.size
            self._separators.append(key)
            self._handles.append(handle)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every (key, value), in order.

        Raises:
          CorruptTableError: unsorted keys, a prefix longer than the previous key, wrong restarts,
            or lengths past the end.
          DuplicateKeyError: a key occurs twice.
          ChecksumError: a block's checksum differs.
          UnsupportedError: a block's compression is neither none nor Snappy.
          LimitError: a block would need more than `limits.TABLE_BLOCK_BYTES`, or the keys are too
            long for the size of the file.
        """
        budget = _KEYS_FREE_BYTES + limits.TABLE_KEYS_RATIO * len(self._data)
        last: Optional[bytes] = None
        floor: Optional[bytes] = None
        for separator, handle in zip(self._separators, self._handles):
            where = f"block at {handle.offset}"
            for key, value in self._entries(self._read_block(handle, where), where):
                if last is not None and key <= last:
                    if key == last:
                        raise DuplicateKeyError(
                            f"the key {key!r} occurs twice",
                            file=self._file,
                            node=where,
                            rule="SM-TABLE-3",
                        )
                    reason = f"the key {key!r} stands after {last!r}"
                    raise self._corrupt(reason, where, "SM-TABLE-3")
                if (
                    floor is not None and key <= floor
                ):  # a look-up would search for the first key in the previous block
                    raise self._corrupt(_NOT_ANNOUNCED, where, "SM-BLOCK-4")
                last, floor = key, None
                budget -= len(key)
                if budget < 0:
                    raise self._keys_too_long(where)
                yield key, value
            if floor is not None or (last is not None and last > separator):
                raise self._corrupt(_NOT_ANNOUNCED, where, "SM-BLOCK-4")
            floor = separator

    def get(self, key: bytes) -> Optional[bytes]:
        """Return the value of `key`, or None. Reads one block; raises as iteration does."""
        number = bisect.bisect_left(self._separators, key)
        if number == len(self._separators):
            return None
        where = f"block at {self._handles[number].offset}"
        for candidate, value in self._entries(
            self._read_block(self._handles[number], where), where
        ):
            if candidate >= key:
                return value if candidate == key else None
        return None

    def _corrupt(self, reason: str, where: str, rule: Optional[str] = None) -> CorruptTableError:
        return CorruptTableError(reason, file=self._file, node=where, rule=rule)

    def _block_too_long(self, size: str, where: str) -> LimitError:
        reason = f"the block has {size}, limit {limits.TABLE_BLOCK_BYTES}"
        return LimitError(
            reason, file=self._file, node=where, limit="TABLE_BLOCK_BYTES", rule="SM-TABLE-9"
        )

    def _keys_too_long(self, where: str) -> LimitError:
        reason = (
            f"the keys take more than {limits.TABLE_KEYS_RATIO} times the bytes that store them"
        )
        return LimitError(
            reason, file=self._file, node=where, limit="TABLE_KEYS_RATIO", rule="SM-BLOCK-5"
        )

    def _handle(self, data: bytes, position: int, end: int, where: str) -> tuple[_Handle, int]:
        try:
            offset, position = read_varint(data, position, end)
            size, position = read_varint(data, position, end)
        except ValueError as error:
            raise self._corrupt(f"block handle: {error}", where, "SM-TABLE-2") from None
        if offset + size + _TRAILER.size > self._end:
            raise TruncatedError(
                f"a block of {size} bytes at {offset} does not fit before the footer at"
                f" {self._end}",
                file=self._file,
                node=where,
                rule="SM-TABLE-2",
            )
        return _Handle(offset, size), position

    def _read_block(self, handle: _Handle, where: str) -> bytes:
        if handle.size > limits.TABLE_BLOCK_BYTES:
            raise self._block_too_long(f"{handle.size} bytes", where)
        end = handle.offset + handle.size
        compression, stored = _TRAILER.unpack(self._data[end : end + _TRAILER.size])
        if masked_crc32c(self._data[handle.offset : end + 1]) != stored:
            reason = "the block's checksum differs"
            raise ChecksumError(reason, file=self._file, node=where, rule="SM-TABLE-6")
        block = self._data[handle.offset : end]
        if compression == _SNAPPY:
            return self._decompress(block, where)
        if compression != _UNCOMPRESSED:
            raise UnsupportedError(
                f"compression {compression} of a block is unknown",
                file=self._file,
                node=where,
                rule="SM-TABLE-7",
            )
        return block

    def _decompress(self, block: bytes, where: str) -> bytes:
        try:
            import cramjam  # only old tables are compressed
        except ImportError as error:
            raise MissingPackageError(
                "snappy", "cramjam", file=self._file, node=where, rule="SM-TABLE-8"
            ) from error

        try:
            length, _ = read_varint(block, 0, len(block))
        except ValueError as error:
            raise self._corrupt(f"Snappy: {error}", where, "SM-TABLE-9") from None
        if length > limits.TABLE_BLOCK_BYTES:
            raise self._block_too_long(f"{length} bytes once it is decompressed", where)
        if length > _SNAPPY_MAX_RATIO * len(block):
            reason = f"Snappy: {len(block)} bytes cannot hold {length}"
            raise self._corrupt(reason, where, "SM-TABLE-9")
        try:
            return bytes(cramjam.snappy.decompress_raw(block))
        except cramjam.DecompressionError as error:
            raise self._corrupt(f"Snappy: {error}", where) from None

    def _entries(self, block: bytes, where: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries of one block; check every length and the positions of the restarts."""
        restarts, end = self._restarts(block, where)
        budget = _KEYS_FREE_BYTES + limits.TABLE_KEYS_RATIO * len(block)
        following = iter(restarts)
        restart = next(following)
        key = b""
        position = 0
        while position < end:
            start = position
            shared, fresh, length = block[
                position : position + 3
            ]  # the restarts that follow guarantee three more bytes
            if (shared | fresh | length) < 0x80:
                position += 3
            else:
                try:
                    shared, position = read_varint(block, position, end)
                    fresh, position = read_varint(block, position, end)
                    length, position = read_varint(block, position, end)
                except ValueError as error:
                    reason = f"entry at {start}: {error}"
                    raise self._corrupt(reason, where, "SM-BLOCK-1") from None
            middle = position + fresh
            if shared > len(key) or middle + length > end:
                reason = f"entry at {start}: its lengths do not fit"
                raise self._corrupt(reason, where, "SM-BLOCK-1")
            if start == restart:
                if shared:
                    reason = f"entry at {start}: a restart shares a prefix"
                    raise self._corrupt(reason, where, "SM-BLOCK-3")
                restart = next(following, -1)
            key = key[:shared] + block[position:middle]
            budget -= len(key)
            if budget < 0:
                raise self._keys_too_long(where)
            position = middle + length
            yield key, block[middle:position]
        if restart != -1 and (end or len(restarts) > 1):
            reason = f"the restart {restart} is not the start of an entry"
            raise self._corrupt(reason, where, "SM-BLOCK-3")

    def _restarts(self, block: bytes, where: str) -> tuple[list[int], int]:
        """Return the offsets of the restarts, and the end of the entries."""
        count = struct.unpack_from("<I", block, len(block) - 4)[0] if len(block) >= 4 else 0
        end = len(block) - 4 - 4 * count
        if count == 0 or end < 0:
            reason = f"{len(block)} bytes cannot hold {count} restarts"
            raise self._corrupt(reason, where, "SM-BLOCK-2")
        restarts = list(struct.unpack_from(f"<{count}I", block, end))
        if restarts[0] != 0:
            reason = "the first restart is not the first entry"
            raise self._corrupt(reason, where, "SM-BLOCK-2")
        return restarts, end


class _BlockBuilder:
    def __init__(self, restart_interval: int) -> None:
        self._interval = restart_interval
        self.clear()

    def clear(self) -> None:
        self._buffer = bytearray()
        self._restarts = [0]
        self._count = 0
        self.last_key = b""

    def size(self) -> int:
        return len(self._buffer) + 4 * len(self._restarts) + 4

    def empty(self) -> bool:
        return not self._buffer

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count < self._interval:
            shared = _shared_prefix(self.last_key, key)
        else:
            self._restarts.append(len(self._buffer))
            self._count = 0
        self._buffer += (
            write_varint(shared) + write_varint(len(key) - shared) + write_varint(len(value))
        )
        self._buffer += key[shared:]
        self._buffer += value
        self.last_key = key
        self._count += 1

    def finish(self) -> bytes:
        return bytes(self._buffer) + struct.pack(
            f"<{len(self._restarts) + 1}I", *self._restarts, len(self._restarts)
        )


class TableWriter:
    """Writes a table to a binary stream, from its current position on, byte for byte as TensorFlow
    does (no compression).

    A block is closed when it has reached `block_size` bytes; every `restart_interval`-th entry of
    it is a restart.
    """

    def __init__(
        self, stream: BinaryIO, block_size: int = 256 << 10, restart_interval: int = 16
    ) -> None:
        self._stream = stream
        self._block_size = block_size
        self._block = _BlockBuilder(restart_interval)
        self._index = _BlockBuilder(1)
        self._offset = 0
        self._last: Optional[bytes] = None
        self._pending: Optional[bytes] = (
            None  # handle of the last closed block; its index key depends on the next key
        )

    def add(self, key: bytes, value: bytes) -> None:
        """Append an entry.

        Raises DuplicateKeyError or CorruptTableError if `key` is not above the previous key.
        """
        if self._last is not None and key <= self._last:
            if key == self._last:
                raise DuplicateKeyError(f"the key {key!r} is written twice")
            raise CorruptTableError(f"the key {key!r} cannot be written after {self._last!r}")
        if self._pending is not None and self._last is not None:
            self._index.add(_shortest_separator(self._last, key), self._pending)
            self._pending = None
        self._last = key
        self._block.add(key, value)
        if self._block.size() >= self._block_size:
            self._close_block()

    def finish(self) -> None:
        """Write the pending block, the metaindex, the index and the footer."""
        if not self._block.empty():
            self._close_block()
        metaindex = self._write_block(_BlockBuilder(1).finish())
        if self._pending is not None and self._last is not None:
            self._index.add(_short_successor(self._last), self._pending)
        handles = metaindex + self._write_block(self._index.finish())
        self._stream.write(handles.ljust(_HANDLES_BYTES, b"\0") + struct.pack("<Q", MAGIC))

    def _close_block(self) -> None:
        self._pending = self._write_block(self._block.finish())
        self._block.clear()

    def _write_block(self, block: bytes) -> bytes:
        handle = write_varint(self._offset) + write_varint(len(block))
        crc = masked(crc32c(bytes((_UNCOMPRESSED,)), crc32c(block)))
        self._stream.write(block + _TRAILER.pack(_UNCOMPRESSED, crc))
        self._offset += len(block) + _TRAILER.size
        return handle


def _shared_prefix(first: bytes, second: bytes) -> int:
    if second.startswith(first):
        return len(first)
    return next(index for index, pair in enumerate(zip(first, second)) if pair[0] != pair[1])


def _shortest_separator(low: bytes, high: bytes) -> bytes:
    """Return a short key that is not below `low`, but below `high`."""
    at = _shared_prefix(low, high)
    if at < len(low) and low[at] + 1 < high[at]:
        return low[:at] + bytes((low[at] + 1,))
    return low


def _short_successor(key: bytes) -> bytes:
    """Return a short key that is not below `key`."""
    for index, byte in enumerate(key):
        if byte != 0xFF:
            return key[:index] + bytes((byte + 1,))
    return key
