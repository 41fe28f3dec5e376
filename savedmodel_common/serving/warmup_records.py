"""The frames of ``assets.extra/tf_serving_warmup_requests``: a TFRecord file, whose records are
PredictionLogs.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator
from typing import Optional, Union

MAX_RECORDS = 1000  # a server refuses a model with more
MAX_RECORD = 1 << 28  # bytes
_HEADER = 12  # bytes: the length of a record and its checksum
_MASK_DELTA = 0xA282EAD8


class Damaged(Exception):
    """Not a TFRecord file, or a damaged one."""


class TooLong(Exception):
    """A record is longer than the reader takes."""


def records(
    data: Union[bytes, mmap.mmap],
    checksum: Optional[Callable[[bytes], int]] = None,
    longest: int = MAX_RECORD,
) -> Iterator[bytes]:
    """Yield the records of a TFRecord file: length and its checksum, bytes and their checksum.

    A file that ends inside a length ends there, for TensorFlow's reader and for this one.

    Args:
      data: the file.
      checksum: the masked checksum (CRC-32C); one in Python by default, for runtimes that have no
        package for it.
      longest: bytes that a record may have.

    Raises:
      Damaged: a checksum does not fit, or the file ends inside a record.
      TooLong: a record has more than ``longest`` bytes.
    """
    position, checksum = 0, checksum or _crc32c()
    while len(data) - position >= _HEADER:
        (length, length_crc) = struct.unpack_from("<QI", data, position)
        if checksum(data[position : position + 8]) != length_crc:
            raise Damaged(
                f"corrupted record at {position}"
                + ("" if position else " (Is this even a TFRecord file?)")
            )
        if length > longest:
            raise TooLong(
                f"a warmup record of {length} bytes at {position}; at most {longest} are read"
            )
        start, end = position + _HEADER, position + _HEADER + length
        if end + 4 > len(data):
            raise Damaged(
                f"truncated record at {position}' failed with Read less bytes than requested"
            )
        if checksum(data[start:end]) != struct.unpack_from("<I", data, end)[0]:
            raise Damaged(f"corrupted record at {start}")
        yield data[start:end]
        position = end + 4


def _crc32c() -> Callable[[bytes], int]:
    """The masked checksum, without a package that a TensorFlow runtime need not have."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)

    def masked(data: bytes) -> int:
        crc = 0xFFFFFFFF
        for byte in data:
            crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
        crc ^= 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF

    return masked
