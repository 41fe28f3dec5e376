"""Check the values of variant tensors, whose decoders in TensorFlow trust them.

A variant is the name of a C++ type, bytes that only this type understands, and tensors. The decoder
of a list of tensors reads the bytes without checking them: a wrong count makes it allocate
gigabytes, a wrong shape aborts the process.
"""

from __future__ import annotations

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.wire import WireError, read_varint

TENSOR_LIST = "tensorflow::TensorList"


def element_shape(value: schema.VariantTensorDataProto) -> schema.TensorShapeProto:
    """Check the metadata of a list of tensors, and return the shape of its elements.

    The metadata are varints: how many elements have no tensor, their indices, the dtype of the
    elements, and the longest length or -1. The shape of the elements follows as a message.

    Raises MalformedError: the metadata are cut off or contradict the tensors.
    """
    data, position = value.metadata, 0
    empty, position = _number(data, position)
    if empty > len(data):
        raise errors.MalformedError(
            f"a list of tensors has {empty} elements without a tensor, in {len(data)} bytes"
        )
    last = -1
    for _ in range(empty):
        index, position = _number(data, position)
        if not last < index < len(value.tensors) + empty:
            raise errors.MalformedError(
                f"element {index} of a list of {len(value.tensors) + empty} tensors has no tensor"
            )
        last = index
    dtype, position = _number(data, position)
    if dtype not in schema.DataType.values():
        raise errors.MalformedError(f"the elements of a list of tensors have the dtype {dtype}")
    _, position = _number(data, position)
    try:
        return schema.parse(schema.TensorShapeProto, data[position:])
    except errors.SavedModelError:
        raise errors.MalformedError(
            "the shape of the elements of a list of tensors is damaged"
        ) from None


def _number(data: bytes, position: int) -> tuple[int, int]:
    try:
        return read_varint(data, position, len(data))
    except WireError:
        raise errors.MalformedError("the metadata of a list of tensors end early") from None
