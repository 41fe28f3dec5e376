"""The bytes of one tensor in a data shard, and its checksum.

Numbers are stored as in memory, row-major, in the byte order of the bundle. A string tensor is
stored as

    length of each element as varint | masked CRC-32C of the lengths | the elements

where the checksums run over the lengths as fixed 32-bit integers (64-bit where one needs it). A
variant tensor is stored as, for each element,

    length as varint | serialised VariantTensorDataProto | masked CRC-32C of everything so far

where the length counts as a 64-bit integer. The entry's own checksum runs over all of it.

Errors raised here name neither file nor key; the reader adds both.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, BinaryIO, Union

from reference_impl.format.bundle.checksum import PIECE, crc32c, crc32c_of_array, masked
from reference_impl.format.errors import ChecksumError, DtypeError, MalformedError, ShapeError
from reference_impl.format.values.dtypes import DType
from reference_impl.format.wire import cut, read_varint, read_varints, write_varint

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NATIVE_ORDER = "<" if sys.byteorder == "little" else ">"
_CHECKSUM_BYTES = 4
_LARGE = 1 << 22  # bytes; a thread for fewer costs more than it saves


def decode_numbers(
    data: memoryview, dtype: DType, shape: tuple[int, ...], order: str
) -> npt.NDArray[Any]:
    """Return an array over `data` without a copy; foreign byte order is swapped into a new
    array.
    """
    import numpy as np

    numpy_dtype = dtype.numpy()
    if not data:
        return reshaped(np.zeros(0, numpy_dtype), shape)
    if order == NATIVE_ORDER:
        return reshaped(np.frombuffer(data, numpy_dtype), shape)
    return reshaped(np.frombuffer(data, dtype.carrier).byteswap().view(numpy_dtype), shape)


def reshaped(flat: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return the array in its shape.

    Raises ShapeError if NumPy cannot hold the shape (too many dimensions).
    """
    try:
        return flat.reshape(shape)
    except ValueError as error:
        raise ShapeError(f"NumPy has no array of shape {shape}: {error}") from None


def decode_elements(
    data: memoryview, dtype: DType, count: int, order: str, verify: bool
) -> tuple[Iterable[bytes], int]:
    """Decode a tensor of strings or variants.

    Returns:
      The elements (strings are decoded one by one, on demand) and the plain checksum of all bytes
      (0 without `verify`). The lengths of strings are always checked.
    """
    return (_decode_strings if dtype.name == "string" else _decode_variants)(
        data, count, order, verify
    )


def _decode_strings(
    data: memoryview, count: int, order: str, verify: bool
) -> tuple[Iterable[bytes], int]:
    end = len(data)
    try:
        lengths, position = read_varints(data, count)
    except ValueError as error:
        raise MalformedError(f"length of string {error}", rule="SM-BUNDLE-13") from None
    start = position + _CHECKSUM_BYTES
    if start + sum(lengths) != end:
        raise MalformedError(
            f"the lengths of the strings do not add up to the {end} bytes of the entry",
            rule="SM-BUNDLE-13",
        )
    crc = crc32c(_fixed_lengths(lengths, order))
    stored = bytes(data[position:start])
    if struct.unpack(order + "I", stored)[0] != masked(crc):
        raise ChecksumError("the checksum of the strings' lengths differs", rule="SM-BUNDLE-12")
    return map(bytes, cut(data, lengths, start)), crc32c(
        data[start:], crc32c(stored, crc)
    ) if verify else 0


def _fixed_lengths(lengths: list[int], order: str) -> bytes:
    if not lengths or max(lengths) <= 0xFFFFFFFF:
        return struct.pack(f"{order}{len(lengths)}I", *lengths)
    return b"".join(
        struct.pack(order + ("I" if length <= 0xFFFFFFFF else "Q"), length) for length in lengths
    )


def _decode_variants(
    data: memoryview, count: int, order: str, verify: bool
) -> tuple[Iterable[bytes], int]:
    end = len(data)
    out: list[bytes] = []
    position = crc = 0
    for _ in range(count):
        try:
            length, position = read_varint(data, position, end)
        except ValueError as error:
            reason = f"length of variant {len(out)}: {error}"
            raise MalformedError(reason, rule="SM-BUNDLE-15") from None
        stop = position + length
        if stop + _CHECKSUM_BYTES > end:
            raise MalformedError(
                f"variant {len(out)} of {length} bytes reaches over the end of the entry",
                rule="SM-BUNDLE-15",
            )
        out.append(bytes(data[position:stop]))
        position = stop + _CHECKSUM_BYTES
        if verify:
            stored = bytes(data[stop:position])
            crc = crc32c(out[-1], crc32c(struct.pack(order + "Q", length), crc))
            if struct.unpack(order + "I", stored)[0] != masked(crc):
                reason = f"the checksum of variant {len(out) - 1} differs"
                raise ChecksumError(reason, rule="SM-BUNDLE-15")
            crc = crc32c(stored, crc)
    if position != end:
        reason = f"{end - position} bytes follow the last variant"
        raise MalformedError(reason, rule="SM-BUNDLE-15")
    return out, crc


class _Sink:
    """A stream that counts its bytes and continues a checksum."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = 0
        self.crc = 0

    def write(self, data: Union[bytes, memoryview], summed: bool = True) -> None:
        self._stream.write(data)
        self.size += len(data)
        if summed:
            self.crc = crc32c(data, self.crc)


def encode(stream: BinaryIO, array: npt.NDArray[Any], dtype: DType) -> tuple[int, int]:
    """Write a tensor as TensorFlow does on this machine; return its size and masked checksum.

    Args:
      stream: the output.
      array: the values. Types that NumPy lacks may be carried by integers of the same width;
        strings by `bytes` or `str` (encoded as UTF-8); variants by `bytes`, each a serialised
        VariantTensorDataProto.
      dtype: the type to store; nothing is converted.

    Raises:
      DtypeError: the array does not carry that type.
    """
    if dtype.itemsize is not None:
        return _write_numbers(stream, _number_bytes(array, dtype))
    sink = _Sink(stream)
    if dtype.name == "string":
        _encode_strings(sink, [_as_bytes(item, dtype) for item in array.ravel().tolist()])
    elif dtype.name == "variant":
        _encode_variants(sink, [_as_bytes(item, dtype) for item in array.ravel().tolist()])
    else:
        raise DtypeError(f"{dtype.name} cannot be stored in a checkpoint")
    return sink.size, masked(sink.crc)


def _write_numbers(stream: BinaryIO, flat: npt.NDArray[Any]) -> tuple[int, int]:
    """Write bytes; return their number and masked checksum, which is computed while the system
    writes a large tensor.

    The benchmark "save: 1 GiB of weights" (docs/evidence/benchmarks.md) justifies the thread:
    writing releases the GIL.
    """
    if flat.size < _LARGE:
        stream.write(flat.data)
        return flat.size, masked(crc32c_of_array(flat))
    from concurrent.futures import (
        ThreadPoolExecutor,
    )  # programs that only read start faster without

    crc = 0
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(stream.write, flat.data)
        for start in range(0, flat.size, PIECE):
            crc = crc32c_of_array(flat[start : start + PIECE], crc)
        written.result()
    return flat.size, masked(crc)


def _number_bytes(array: npt.NDArray[Any], dtype: DType) -> npt.NDArray[Any]:
    """Return the bytes of an array as they are stored.

    Raises DtypeError: the array does not carry that type.
    """
    import numpy as np

    if not _carries(array.dtype, dtype):
        raise DtypeError(f"an array of {array.dtype.name} does not carry {dtype.name}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if dtype.bits is not None and dtype.bits < 8:
        # Some releases of ml_dtypes extend the sign into the high bits; TensorFlow leaves them
        # zero.
        flat = flat & np.uint8((1 << dtype.bits) - 1)
    return flat


def _carries(found: np.dtype[Any], dtype: DType) -> bool:
    """Return whether an array of this type holds the stored bits, as NumPy's or ml_dtypes' own type
    or as an integer.
    """
    if dtype.ml_dtype is None:
        return str(found.name) == dtype.carrier
    return str(found.name) == dtype.ml_dtype or (
        found.kind in "iu" and found.itemsize == dtype.itemsize
    )


def _as_bytes(item: object, dtype: DType) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str) and dtype.name == "string":
        return item.encode("utf-8")
    raise DtypeError(f"an element of a {dtype.name} tensor is bytes, not {type(item).__name__}")


def _encode_strings(sink: _Sink, items: list[bytes]) -> None:
    lengths = [len(item) for item in items]
    sink.write(b"".join(map(write_varint, lengths)), summed=False)
    sink.crc = crc32c(_fixed_lengths(lengths, NATIVE_ORDER))
    sink.write(struct.pack("=I", masked(sink.crc)))
    for item in items:
        sink.write(item)


def _encode_variants(sink: _Sink, items: list[bytes]) -> None:
    for item in items:
        sink.write(write_varint(len(item)), summed=False)
        sink.crc = crc32c(struct.pack("=Q", len(item)), sink.crc)
        sink.write(item)
        sink.write(struct.pack("=I", masked(sink.crc)))
