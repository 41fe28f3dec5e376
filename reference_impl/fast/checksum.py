"""Compute CRC-32C without the interpreter's lock.

`google_crc32c.extend` holds the lock, so while a thread verifies a value, the load stands still: 80
ms for a GiB. The C function that it calls needs no lock, and ctypes releases it during the call.

The benchmark "load: transformer of 12 layers" (docs/evidence/benchmarks.md) justifies it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Optional

import numpy.typing as npt

from reference_impl.format.bundle.checksum import crc32c_of_array

_CHECK, _CHECKSUM = b"123456789", 0xE3069283  # the check value of CRC-32C, as catalogues give it
_Extend = Callable[[int, int, int], int]  # of a checksum, an address and a number of bytes


def _c_function() -> Optional[_Extend]:
    """Return `crc32c_extend` of the C library in google_crc32c.

    Return None if the package is pure Python, if the system does not search the libraries that an
    extension module is linked to (Windows), or if a function of that name computes something else.
    """
    try:
        from google_crc32c import _crc32c

        found = ctypes.CDLL(_crc32c.__file__).crc32c_extend
    except (ImportError, AttributeError, OSError):
        return None
    found.restype = ctypes.c_uint32
    found.argtypes = (ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t)
    return found if found(0, _CHECK, len(_CHECK)) == _CHECKSUM else None


_EXTEND = _c_function()


def crc32c_unlocked(array: npt.NDArray[Any], crc: int = 0) -> int:
    """Continue `crc` over a contiguous array of bytes, like `crc32c_of_array`."""
    if _EXTEND is None:
        return crc32c_of_array(array, crc)
    return _EXTEND(crc, array.__array_interface__["data"][0], array.size)
