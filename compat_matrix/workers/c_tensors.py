"""Tensors between NumPy and the C API.

Python 3.6 syntax, standard library and NumPy.

Strings have two layouts. Since 2.4 a string tensor is an array of ``TF_TString`` (24 bytes; the two
low bits of the first byte say where the characters are). Before, it is a table of 64-bit offsets
and, behind it, each string with its length as a varint in front.
"""

import ctypes
import struct

import numpy as np

from savedmodel_common import tensors as tensor_file

from .signature_wire import DTYPES
from .tensor_wire import NUMBERS

TSTRING = 24
SMALL, LARGE, OFFSET, VIEW = range(4)
BLOCK = 1 << 16  # strings looked at together


def to_c(library, tensor, keep):
    """Return a new ``TF_Tensor``; the caller deletes it.

    The memory it points to is added to ``keep``, which must outlive its use.
    """
    array = np.ascontiguousarray(tensor.array)
    dims = (ctypes.c_int64 * max(tensor.array.ndim, 1))(*tensor.array.shape)
    if tensor.dtype != "string":
        length, parts = array.nbytes, [array.tobytes()]
    elif library.has_tstring:
        # Block by block: as Python objects the strings take several times the memory.
        flat = array.ravel()
        blocks = (flat[start : start + BLOCK].tolist() for start in range(0, flat.size, BLOCK))
        length, parts = (
            TSTRING * flat.size,
            (_tstring_block(block, keep) for block in blocks),
        )
    else:
        data = _encoded(library, [bytes(item) for item in array.ravel().tolist()])
        length, parts = len(data), [data]
    handle = library.TF_AllocateTensor(NUMBERS[tensor.dtype], dims, tensor.array.ndim, length)
    if not handle:
        raise MemoryError("TF_AllocateTensor refused {} bytes of {}".format(length, tensor.dtype))
    place = library.TF_TensorData(handle)
    for part in parts:
        if part:
            ctypes.memmove(place, part, len(part))
            place += len(part)
    return handle


def _encoded(library, items):
    offsets, blob = [], b""
    for item in items:
        offsets.append(len(blob))
        room = library.TF_StringEncodedSize(len(item))
        buffer = ctypes.create_string_buffer(room)
        library.checked(
            lambda status, item=item, buffer=buffer, room=room: library.TF_StringEncode(
                item, len(item), ctypes.addressof(buffer), room, status
            )
        )
        blob += buffer.raw
    return struct.pack("={}Q".format(len(offsets)), *offsets) + blob


def _tstring(item, keep):
    if len(item) < TSTRING - 1:
        return struct.pack("=B23s", len(item) << 2 | SMALL, item)
    # A view points at bytes that are not TensorFlow's. They live as long as the model, since a
    # table or a variable may go on holding the view.
    return struct.pack("=QQQ", len(item) << 2 | VIEW, _address(keep.add(item)), 0)


def _tstring_block(strings, keep):
    return b"".join(_tstring(bytes(item), keep) for item in strings)


class Kept(object):
    """Strings that TensorFlow may go on pointing at. Of equal ones the first is kept."""

    def __init__(self):
        self._items = {}

    def add(self, item):
        """The string to point at: this one, or the equal one that is there already."""
        return self._items.setdefault(item, item)


def _address(item):
    return ctypes.cast(ctypes.c_char_p(item), ctypes.c_void_p).value or 0


def from_c(library, handle, shaped=np.reshape):
    """A ``TF_Tensor`` as a :class:`tensors.Tensor`; the caller still owns the handle.

    TypeError for a resource or variant.

    ``shaped`` gives a vector its shape. NumPy raises ValueError where there are more dimensions
    than it has.
    """
    dtype = DTYPES.get(library.TF_TensorType(handle), "invalid")
    shape = tuple(library.TF_Dim(handle, i) for i in range(library.TF_NumDims(handle)))
    count = 1
    for size in shape:
        count *= size
    length, pointer = library.TF_TensorByteSize(handle), library.TF_TensorData(handle)
    if dtype == "string":
        items = (
            _tstrings(pointer, count)
            if library.has_tstring
            else _encoded_strings(library, pointer, length, count)
        )
        array = np.empty(count, dtype=object)
        array[:] = items
        return tensor_file.Tensor(dtype, shaped(array, shape))
    if dtype not in tensor_file.CARRIERS:
        raise TypeError("a tensor of {} has no value to show".format(dtype))
    raw = ctypes.string_at(pointer, length) if length else b""
    carrier = np.dtype(tensor_file.CARRIERS[dtype])
    if len(raw) != count * carrier.itemsize:
        raise ValueError("a tensor {}{} of {} bytes".format(dtype, list(shape), len(raw)))
    return tensor_file.Tensor(dtype, shaped(np.frombuffer(raw, dtype=carrier).copy(), shape))


def _tstrings(pointer, count):
    out = []
    for index in range(count):
        base = pointer + index * TSTRING
        raw = ctypes.string_at(base, TSTRING)
        kind = raw[0] & 3
        if kind == SMALL:
            size = raw[0] >> 2
            out.append(raw[1 : 1 + size])
        elif kind == OFFSET:
            size, offset = struct.unpack_from("=II", raw)
            out.append(ctypes.string_at(base + offset, size >> 2))
        else:
            # size, capacity, pointer when large; size, pointer when a view
            words = struct.unpack("=QQQ", raw)
            size = words[0] >> 2
            out.append(
                ctypes.string_at(words[2] if kind == LARGE else words[1], size) if size else b""
            )
    return out


def _encoded_strings(library, pointer, length, count):
    out = []
    for index in range(count):
        offset = struct.unpack("=Q", ctypes.string_at(pointer + 8 * index, 8))[0]
        source = pointer + 8 * count + offset
        start, size = ctypes.c_void_p(), ctypes.c_size_t()
        library.checked(
            lambda status, source=source, start=start, size=size: library.TF_StringDecode(
                source, pointer + length - source, ctypes.byref(start), ctypes.byref(size), status
            )
        )
        out.append(ctypes.string_at(start.value, size.value) if size.value else b"")
    return out
