"""CRC-32C as TensorFlow stores it: computed by google-crc32c, masked on disk.

A stored checksum is rotated and offset ("masked"), so that a checksum over bytes that themselves
hold checksums stays strong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

import google_crc32c

if TYPE_CHECKING:
    import numpy.typing as npt

# google_crc32c.extend takes `bytes` and arrays only; pieces of this size are copied inside the
# processor's cache, which costs next to nothing, while a copy of a whole memory-mapped tensor costs
# more than the checksum.
PIECE = 1 << 18
_MASK_DELTA = 0xA282EAD8


def crc32c(data: Union[bytes, memoryview], crc: int = 0) -> int:
    """Continue `crc` over `data` (a memoryview of bytes is never copied as a whole); return the
    plain checksum.
    """
    if len(data) <= PIECE:
        return int(google_crc32c.extend(crc, bytes(data)))
    for start in range(0, len(data), PIECE):
        crc = google_crc32c.extend(crc, bytes(data[start : start + PIECE]))
    return crc


def crc32c_of_array(array: npt.NDArray[Any], crc: int = 0) -> int:
    """Continue `crc` over a contiguous array of bytes, without a copy if google_crc32c is
    compiled.
    """
    try:
        return int(google_crc32c.extend(crc, array))
    except TypeError:  # a release or an implementation that requires `bytes`
        return crc32c(array.tobytes(), crc)


def masked(crc: int) -> int:
    """Return the form in which a checksum is stored."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def masked_crc32c(data: Union[bytes, memoryview]) -> int:
    """Return the masked checksum of `data`."""
    return masked(crc32c(data))
