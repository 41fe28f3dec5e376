"""``TensorProto`` <-> :class:`~savedmodel_common.tensors.Tensor`, as ``Tensor::FromProto`` and
``AsProtoField`` do it.

Written apart from the client's ``serving.tensors``, which is tested against it, and without
ml_dtypes: arrays are of the carriers' types.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compat_matrix.workers.signature_wire import DTYPES
from compat_matrix.workers.tensor_wire import NUMBERS
from reference_impl.format.wire import cut, read_varints
from savedmodel_common.tensors import CARRIERS, Tensor
from savedmodel_standin import deep, memory

# How TensorFlow writes a type in a message, where that is not our name.
_SPOKEN = {"float32": "float", "float64": "double", "float16": "half"}
_LISTS = {
    "float32": "float_val", "float64": "double_val", "string": "string_val", "int64": "int64_val",
    "bool": "bool_val", "uint32": "uint32_val", "uint64": "uint64_val", "complex64": "scomplex_val",
    "complex128": "dcomplex_val", "float16": "half_val", "bfloat16": "half_val",
    **dict.fromkeys(("int8", "uint8", "int16", "uint16", "int32", "qint8", "quint8", "qint16",
    "quint16", "qint32"), "int_val"), **dict.fromkeys(("int4", "uint4", "int2", "uint2"),
    "int_val"),
}  # fmt: skip
_COMPLEX = {"complex64": np.float32, "complex128": np.float64}
# bytes that a string takes beside its characters: the list, the array, what the session is given
TEXT = 64
_MOST = 1 << 16  # elements that are Python objects at a time
MAX_RANK = 254  # of TensorFlow


class NotATensor(ValueError):
    """The message describes no tensor."""


def spoken(dtype: str) -> str:
    """The type's name in TensorFlow's messages."""
    return _SPOKEN.get(dtype, dtype)


def filled(proto: Any) -> int:
    """Return the bytes of a tensor that stand for elements that the message does not hold.

    Raises :class:`NotATensor`: no type, or a shape that is not known.
    """
    dtype, sizes = _type_and_shape(proto)
    count = math.prod(sizes)
    width = TEXT if dtype == "string" else np.dtype(CARRIERS[dtype]).itemsize
    return 0 if proto.tensor_content else max(0, count - _length(proto, dtype)) * width


def decode(proto: Any) -> Tensor:
    """Raises :class:`NotATensor`: no type, a shape that is not known, bytes that do not fill it,
    too many that nobody sent.
    """
    dtype, sizes = _type_and_shape(proto)
    count = math.prod(sizes)
    if filled(proto) > memory.FILLED:
        raise NotATensor(f"more than {memory.FILLED} bytes that the message does not hold")
    try:
        if dtype == "string":
            return Tensor(dtype, deep.shaped(_strings(proto, count), sizes))
        carrier = np.dtype(CARRIERS[dtype])
        if proto.tensor_content:
            if len(proto.tensor_content) != count * carrier.itemsize:
                raise NotATensor(f"{len(proto.tensor_content)} bytes for {count} elements")
            flat = np.frombuffer(proto.tensor_content, np.uint8 if dtype == "bool" else carrier)
            if dtype == "bool" and np.any(flat > 1):
                raise NotATensor("a truth value that is neither 0 nor 1")
            return Tensor(dtype, deep.shaped(flat.view(carrier), sizes))
        return Tensor(
            dtype, deep.shaped(_padded(_listed(proto, dtype, carrier, count), count), sizes)
        )
    except NotATensor:
        raise
    except ValueError as error:  # sizes beside a zero that NumPy cannot multiply
        raise NotATensor(str(error)) from None


def _type_and_shape(proto: Any) -> tuple[str, tuple[int, ...]]:
    dtype = DTYPES.get(proto.dtype, "")
    if dtype not in CARRIERS and dtype != "string":
        raise NotATensor(f"dtype {proto.dtype}")
    if len(proto.tensor_shape.dim) > MAX_RANK:  # TensorFlow passes over `unknown_rank` here
        raise NotATensor(f"more than {MAX_RANK} dimensions")
    sizes = tuple(dim.size for dim in proto.tensor_shape.dim)
    if any(size < 0 for size in sizes):
        raise NotATensor("the shape is not known")
    return dtype, sizes


def _length(proto: Any, dtype: str) -> int:
    """Return the number of elements that the message lists."""
    if dtype.startswith("float8"):
        return len(proto.float8_val)
    if dtype not in _LISTS:
        return 0
    values = getattr(proto, _LISTS[dtype])
    return len(values) // 2 if dtype in _COMPLEX else len(values)


def _listed(proto: Any, dtype: str, carrier: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
    """The first ``count`` elements that the message lists."""
    if dtype.startswith("float8"):
        return np.frombuffer(proto.float8_val, np.uint8)
    values = getattr(proto, _LISTS[dtype])
    length = min(_length(proto, dtype), count) * (2 if dtype in _COMPLEX else 1)
    out = np.empty(
        length, _COMPLEX.get(dtype, np.uint16 if dtype in ("float16", "bfloat16") else carrier)
    )
    # 32-bit lists and narrow types: out of range means C's conversion.
    through = np.int64 if out.dtype.kind in "iu" and dtype not in ("int64", "uint64") else out.dtype
    for start in range(0, length, _MOST):
        out[start : start + _MOST] = np.array(
            values[start : min(start + _MOST, length)], through
        ).astype(out.dtype)
    return out.view(carrier)


def _padded(values: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """A list that is too short repeats its last element; an empty one means zeros."""
    if values.size >= count:
        return values[:count]
    out = np.empty(count, values.dtype)
    out[: values.size] = values
    out[values.size :] = values[-1] if values.size else 0
    return out


def _strings(proto: Any, count: int) -> np.ndarray[Any, Any]:
    if proto.tensor_content and count > len(proto.tensor_content):
        raise NotATensor("lengths of strings")
    out = np.empty(count, dtype=object)
    if proto.tensor_content:
        out[:] = _string_content(proto.tensor_content, count)
        return out
    listed = min(len(proto.string_val), count)
    for start in range(0, listed, _MOST):
        out[start : start + _MOST] = proto.string_val[start : min(start + _MOST, listed)]
    out[listed:] = proto.string_val[listed - 1] if listed else b""
    return out


def _string_content(content: bytes, count: int) -> list[bytes]:
    """Return the strings as TensorFlow stores them: all lengths as varints, then all characters."""
    try:
        lengths, position = read_varints(content, count)
    except ValueError:
        raise NotATensor("lengths of strings") from None
    if position + sum(lengths) != len(content):
        raise NotATensor("characters of strings")
    return list(cut(content, lengths, position))


def encode(tensor: Tensor, proto: Any, as_content: bool = False) -> None:
    """Fill an empty ``proto``: the values in the list of their type, or in ``tensor_content``."""
    proto.dtype = NUMBERS[tensor.dtype]
    for size in tensor.array.shape:
        proto.tensor_shape.dim.add().size = size
    proto.tensor_shape.SetInParent()
    flat = tensor.array.ravel()
    if tensor.dtype == "string":
        _extend(proto.string_val, flat)
    elif as_content:
        proto.tensor_content = flat.tobytes()
    elif tensor.dtype.startswith("float8"):
        proto.float8_val = flat.tobytes()
    elif tensor.dtype in _COMPLEX:
        _extend(getattr(proto, _LISTS[tensor.dtype]), flat.view(_COMPLEX[tensor.dtype]))
    elif tensor.dtype in ("float16", "bfloat16"):
        _extend(proto.half_val, flat.view(np.uint16))
    elif tensor.dtype in _LISTS:
        _extend(getattr(proto, _LISTS[tensor.dtype]), flat)
    else:
        proto.tensor_content = flat.tobytes()


def _extend(values: Any, flat: np.ndarray[Any, Any]) -> None:
    """Append elements to a list of a message.

    A Python number is several times an element: never all of them at once.
    """
    for start in range(0, flat.size, _MOST):
        values.extend(flat[start : start + _MOST].tolist())
