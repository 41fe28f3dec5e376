"""Convert TensorProto to NumPy arrays and back: constants of graphs, defaults of arguments, bounds
of specs.

Elements are in `tensor_content` or in a list of their type. A list may be shorter than the shape:
its last element then fills the rest, and no element at all means zeros.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from reference_impl.format import errors, limits, schema
from reference_impl.format.values import dtypes
from reference_impl.format.values.dtypes import DType
from reference_impl.format.values.shapes import check_rank, has_valid_rank, shape_proto
from reference_impl.format.wire import cut, read_varints

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_LIST_OF = {
    "float32": "float_val",
    "float64": "double_val",
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "bool": "bool_val",
    "string": "string_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    **dict.fromkeys(("int32", "int16", "int8", "uint8", "uint16"), "int_val"),
    **dict.fromkeys(("qint8", "quint8", "qint16", "quint16", "qint32"), "int_val"),
    **dict.fromkeys(("int4", "uint4", "int2", "uint2"), "int_val"),
}
# Dtype -> its letter for `struct`, and the value of an element that is not stored.
_FREQUENT: dict[str, tuple[str, Union[int, float, bool]]] = {
    "float32": ("f", 0.0),
    "float64": ("d", 0.0),
    "int32": ("i", 0),
    "int64": ("q", 0),
    "bool": ("?", False),
}
_FEW_DIMENSIONS = 8  # fewer than any release of NumPy takes
STRING_COST = 64  # least memory of one element
_EMPTY_STRING = 24  # bytes of it in a tensor of TensorFlow


def decode(proto: schema.TensorProto) -> npt.NDArray[Any]:
    """Return the values as a read-only array; elements of a string tensor are `bytes` in an array
    of objects.

    Raises:
      DtypeError: the tensor is a reference, resource or variant, which has no value of its own.
      ShapeError: a dimension is unknown or negative, or the number of bytes does not fit the shape.
      LimitError: a small message claims a large tensor.
    """
    import numpy as np

    dtype, shape, count = _described(proto)
    content = proto.tensor_content
    flat = _from_content(content, dtype, count) if content else _from_list(proto, dtype, count)
    try:
        if flat.size != count:
            last = (
                flat[-1:]
                if flat.size
                else np.zeros(1, flat.dtype)
                if dtype.name != "string"
                else np.array([b""], object)
            )
            if flat.size <= 1:  # one value, repeated without memory
                return np.broadcast_to(last.reshape(()), shape)
            flat = _filled(flat, count, dtype)
        array = flat.reshape(shape)
    except ValueError as error:  # more dimensions than NumPy has
        raise errors.ShapeError(f"shape {list(shape)}: {error}") from error
    array.flags.writeable = False
    return array


def check(proto: schema.TensorProto) -> None:
    """Raise what `decode` raises, without NumPy and without the memory of the values."""
    dtype, _, count = _described(proto)
    content = proto.tensor_content
    if content and dtype.name == "string":
        _strings(content, count)
    elif content:
        _check_content(content, dtype, count)
    else:
        _check_filled(_listed(proto, dtype, count), dtype, count)


def _described(proto: schema.TensorProto) -> tuple[DType, tuple[int, ...], int]:
    """Return dtype, shape and number of elements. Raises DtypeError, ShapeError, LimitError."""
    dtype = dtypes.by_number(proto.dtype)
    shape = _shape(proto.tensor_shape)
    count = math.prod(shape)
    if count * (dtype.itemsize or STRING_COST) > limits.TENSOR_BYTES:
        raise errors.LimitError(
            f"a {dtype.name} tensor of shape {list(shape)}", limit="TENSOR_BYTES"
        )
    return dtype, shape, count


def extra_bytes(proto: schema.TensorProto) -> int:
    """Return the bytes that decoding adds, at least 0. A TensorProto may store one value for a
    whole tensor: ``float_val: 1`` with shape [1000] adds 3,996 bytes.

    Raises MalformedError: the shape is unknown, negative or has too many dimensions; DtypeError:
    there is no such dtype.
    """
    itemsize = dtypes.by_number(proto.dtype).itemsize
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if (
        any(size < 0 for size in sizes)
        or proto.tensor_shape.unknown_rank
        or not has_valid_rank(len(sizes))
    ):
        raise errors.MalformedError(
            "the shape of a constant is unknown, negative or has too many dimensions"
        )
    count = math.prod(sizes)
    if itemsize is not None:
        return max(0, count * itemsize - int(proto.ByteSize()))
    # Listed strings take about as much space in the file.
    return 0 if proto.tensor_content else max(0, count - len(proto.string_val)) * _EMPTY_STRING


def integers(proto: schema.TensorProto, most: int) -> Optional[list[int]]:
    """Return the values of a small tensor of integers in one list, without NumPy.

    Returns None for a tensor of another type or with more than `most` elements. Raises DtypeError,
    ShapeError as `decode` does.
    """
    dtype, count = dtypes.by_number(proto.dtype), math.prod(_shape(proto.tensor_shape))
    size, carrier = dtype.itemsize, dtype.carrier
    if (
        size is None
        or carrier is None
        or dtype.ml_dtype
        or not carrier.startswith(("int", "uint"))
        or count > most
    ):
        return None
    content = proto.tensor_content
    listed = [] if content else getattr(proto, _LIST_OF[dtype.name])
    if len(content) != count * size if content else len(listed) > count:
        raise errors.ShapeError(
            f"{len(content)} bytes, {len(listed)} values for {count} elements of {dtype.name}"
        )
    content = (
        content
        or b"".join((value % (1 << 8 * size)).to_bytes(size, "little") for value in listed)
        or bytes(size)
    )
    signed = carrier.startswith("int")
    values = [
        int.from_bytes(content[at : at + size], "little", signed=signed)
        for at in range(0, len(content), size)
    ]
    return (values + values[-1:] * (count - len(values)))[:count]


def first_numbers(
    proto: schema.TensorProto, most: int
) -> Optional[tuple[list[Union[int, float, bool]], int]]:
    """Return the first `most` elements of a tensor of numbers, and how many elements it has,
    without NumPy.

    Return None for a tensor of a rare dtype or of many dimensions. Raises what `decode` raises.
    """
    name = dtypes.by_number(proto.dtype).name
    if name not in _FREQUENT or len(proto.tensor_shape.dim) > _FEW_DIMENSIONS:
        return None
    check(proto)
    form, zero = _FREQUENT[name]
    count = math.prod(_shape(proto.tensor_shape))
    wanted = min(count, most)
    if proto.tensor_content:
        item = struct.Struct(f"<{form}")
        content = proto.tensor_content[: wanted * item.size]
        return [value for (value,) in item.iter_unpack(content)], count
    listed = list(getattr(proto, _LIST_OF[name])[:wanted])
    return listed + (listed[-1:] or [zero]) * (wanted - len(listed)), count


def strings(proto: schema.TensorProto, most: int) -> Optional[list[bytes]]:
    """Return the first `most` elements of a tensor of strings in one list, without NumPy; None for
    a tensor of another type.

    Like TensorFlow, this function ignores listed elements that the shape has no place for.
    Raises ShapeError.
    """
    if proto.dtype != schema.DT_STRING:
        return None
    count = math.prod(_shape(proto.tensor_shape))
    if proto.tensor_content:
        return _strings(proto.tensor_content, count)[:most]
    listed = list(proto.string_val[: min(count, most)])
    return listed + (listed[-1:] or [b""]) * (min(count, most) - len(listed))


def _filled(flat: npt.NDArray[Any], count: int, dtype: DType) -> npt.NDArray[Any]:
    """Repeat the last element up to `count` elements."""
    import numpy as np

    _check_filled(flat.size, dtype, count)
    whole = np.empty(count, flat.dtype)
    whole[: flat.size], whole[flat.size :] = flat, flat[-1]
    return whole


def _check_filled(stored: int, dtype: DType, count: int) -> None:
    if stored > 1 and (count - stored) * (dtype.itemsize or STRING_COST) > limits.FILLED_BYTES:
        raise errors.LimitError(
            f"a {dtype.name} tensor of {count} elements stores {stored}", limit="FILLED_BYTES"
        )


def _shape(shape: schema.TensorShapeProto) -> tuple[int, ...]:
    sizes = tuple(dim.size for dim in shape.dim)
    if shape.unknown_rank or any(size < 0 for size in sizes):
        raise errors.ShapeError("a tensor has an unknown or negative dimension")
    check_rank(len(sizes))
    return sizes


def _from_content(content: bytes, dtype: DType, count: int) -> npt.NDArray[Any]:
    import numpy as np

    if dtype.name == "string":
        return object_array(_strings(content, count))
    _check_content(content, dtype, count)
    flat = np.frombuffer(content, dtype.carrier)
    return (flat.byteswap() if sys.byteorder == "big" else flat).view(dtype.numpy())


def _check_content(content: bytes, dtype: DType, count: int) -> None:
    if dtype.itemsize is None or dtype.is_ref:
        raise errors.DtypeError(f"a {dtype.name} tensor has no plain bytes")
    if len(content) != count * dtype.itemsize:
        raise errors.ShapeError(f"{len(content)} bytes for {count} elements of {dtype.name}")


def _listed(proto: schema.TensorProto, dtype: DType, count: int) -> int:
    """Return the number of listed elements.

    Raises DtypeError, and ShapeError: there are more than `count`.
    """
    if dtype.name.startswith(("float8", "float4")):
        stored = len(proto.float8_val)
    elif dtype.name not in _LIST_OF:
        raise errors.DtypeError(f"a {dtype.name} tensor has no value of its own")
    else:
        stored = len(getattr(proto, _LIST_OF[dtype.name]))
    if dtype.name.startswith("complex"):
        if stored % 2:
            raise errors.ShapeError("a complex number lacks its imaginary part")
        stored //= 2
    if stored > count:
        raise errors.ShapeError(f"{stored} values for {count} elements")
    return stored


def _strings(content: bytes, count: int) -> list[bytes]:
    """Decode strings: the lengths of all of them, then their bytes."""
    if count > len(content):
        raise errors.ShapeError(
            f"length of string {len(content)}: {len(content)} bytes cannot hold those of {count}"
        )
    try:
        lengths, position = read_varints(content, count)
    except ValueError as error:
        raise errors.ShapeError(f"length of string {error}") from None
    if position + sum(lengths) != len(content):
        raise errors.ShapeError(
            f"the lengths of {count} strings do not add up to {len(content)} bytes"
        )
    return list(cut(content, lengths, position))


def object_array(items: Sequence[Union[bytes, str]]) -> npt.NDArray[Any]:
    """Return an array of these objects.

    `np.array` would turn them into text and strip trailing zero bytes.
    """
    import numpy as np

    array = np.empty(len(items), object)
    array[:] = items
    return array


def _from_list(proto: schema.TensorProto, dtype: DType, count: int) -> npt.NDArray[Any]:
    """Return the listed elements. There may be fewer than `count`, but not more."""
    import numpy as np

    _listed(proto, dtype, count)
    numpy_dtype = dtype.numpy()
    flat: npt.NDArray[Any]
    if dtype.name.startswith(("float8", "float4")):
        flat = np.frombuffer(proto.float8_val, np.uint8).view(numpy_dtype)
    else:
        values: Any = getattr(proto, _LIST_OF[dtype.name])
        if dtype.name == "string":
            flat = object_array(list(values))
        elif dtype.name in ("float16", "bfloat16"):
            flat = np.array(values, np.int64).astype(np.uint16).view(numpy_dtype)
        elif dtype.name.startswith("complex"):
            flat = np.array(values, f"float{4 * (dtype.itemsize or 0)}").view(numpy_dtype)
        else:
            flat = np.array(
                values, np.int64 if _LIST_OF[dtype.name] == "int_val" else numpy_dtype
            ).astype(numpy_dtype)
    return flat


def encode(array: Union[npt.NDArray[Any], np.generic]) -> schema.TensorProto:
    """Return a tensor with these values: the bytes of numbers, a list of strings (`str` as UTF-8).

    Raises DtypeError.
    """
    import numpy as np

    values = np.asarray(array)
    dtype = dtypes.from_numpy(values.dtype)
    out = schema.TensorProto(dtype=dtype.number, tensor_shape=shape_proto(values.shape))
    if dtype.name != "string":
        little = (
            values.astype(values.dtype.newbyteorder("<"))
            if values.dtype.kind in "iufcb"
            else values
        )
        out.tensor_content = np.ascontiguousarray(little).tobytes()
        return out
    for item in values.ravel().tolist():
        if not isinstance(item, (str, bytes)):
            raise errors.DtypeError(f"a {type(item).__name__} is not an element of a string tensor")
        out.string_val.append(item.encode("utf-8") if isinstance(item, str) else item)
    return out
