"""Tensors as serialized TensorProtos, without protobuf.

Python 3.6 syntax, standard library and NumPy.

Field numbers are those of ``tensor.proto`` and ``tensor_shape.proto``. Numbers travel as the bytes
of ``tensor_content``, strings as ``string_val``.
"""

import numpy as np

from savedmodel_common.tensors import CARRIERS, Tensor

from . import signature_wire

NUMBERS = {name: number for number, name in signature_wire.DTYPES.items()}


def varint(number):
    """A number that is not negative, seven bits a byte."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, value: "int | bytes") -> bytes:
    """One field of a message: an int, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def to_wire(tensor):
    """A serialized TensorProto. TypeError for a dtype that TensorProto has no number of."""
    if tensor.dtype not in NUMBERS:
        raise TypeError("TensorFlow has no dtype {!r}".format(tensor.dtype))
    array = np.asarray(tensor.array)
    shape = b"".join(field(2, field(1, size)) for size in array.shape)
    head = field(1, NUMBERS[tensor.dtype]) + field(2, shape)
    if tensor.dtype == "string":
        return head + b"".join(field(8, bytes(item)) for item in array.ravel().tolist())
    return head + field(4, array.tobytes())


def from_wire(data):
    """The :class:`tensors.Tensor` of a serialized TensorProto.

    Raises TypeError for a resource or variant, ValueError for bytes that are not such a message.
    """
    found, items = {}, []
    for number, value in signature_wire.fields(data):
        if number == 8:
            items.append(bytes(value))
        else:
            found[number] = value
    dtype, shape = (
        signature_wire.DTYPES.get(found.get(1, 0), "invalid"),
        signature_wire.dims(found.get(2, b"")),
    )
    if dtype == "string":
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return Tensor(dtype, array.reshape(shape))
    if dtype not in CARRIERS:
        raise TypeError("a tensor of {} has no value to show".format(dtype))
    return Tensor(dtype, np.frombuffer(bytes(found.get(4, b"")), CARRIERS[dtype]).reshape(shape))
