"""``TensorProto`` <-> :class:`~compat_matrix.workers.tensors.Tensor`, as ``Tensor::FromProto`` and ``AsProtoField`` do it.

Written apart from the client's ``consumers.serving.tensors``, which is tested against it, and without ml_dtypes: arrays are of
the carriers' types.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compat_matrix.workers.signature_wire import DTYPES
from compat_matrix.workers.tensors import CARRIERS, Tensor

NUMBERS = {name: number for number, name in DTYPES.items()}
# How TensorFlow writes a type in a message, where that is not our name.
_SPOKEN = {"float32": "float", "float64": "double", "float16": "half"}
_LISTS = {
    "float32": "float_val", "float64": "double_val", "string": "string_val", "int64": "int64_val", "bool": "bool_val",
    "uint32": "uint32_val", "uint64": "uint64_val", "complex64": "scomplex_val", "complex128": "dcomplex_val",
    "float16": "half_val", "bfloat16": "half_val",
    **dict.fromkeys(("int8", "uint8", "int16", "uint16", "int32", "qint8", "quint8", "qint16", "quint16", "qint32"), "int_val"),
    **dict.fromkeys(("int4", "uint4", "int2", "uint2"), "int_val"),
}  # fmt: skip
_COMPLEX = {"complex64": np.float32, "complex128": np.float64}
MAX_BYTES = 1 << 32
MAX_RANK = 254  # of TensorFlow


class NotATensor(ValueError):
    """The message describes no tensor."""


def spoken(dtype: str) -> str:
    """The type's name in TensorFlow's messages."""
    return _SPOKEN.get(dtype, dtype)


def decode(proto: Any) -> Tensor:
    """Raises :class:`NotATensor`: no type, a shape that is not known, or bytes that do not fill it."""
    dtype = DTYPES.get(proto.dtype, "")
    if dtype not in CARRIERS and dtype != "string":
        raise NotATensor(f"dtype {proto.dtype}")
    sizes = tuple(dim.size for dim in proto.tensor_shape.dim)
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in sizes) or len(sizes) > MAX_RANK:
        raise NotATensor("the shape is not known")
    count = math.prod(sizes)
    if dtype == "string":
        return Tensor(dtype, _strings(proto, count).reshape(sizes))
    carrier = np.dtype(CARRIERS[dtype])
    if count * carrier.itemsize > MAX_BYTES:
        raise NotATensor(f"more than {MAX_BYTES} bytes")
    if proto.tensor_content:
        if len(proto.tensor_content) != count * carrier.itemsize:
            raise NotATensor(f"{len(proto.tensor_content)} bytes for {count} elements")
        return Tensor(dtype, np.frombuffer(proto.tensor_content, carrier).reshape(sizes))
    return Tensor(dtype, _padded(_listed(proto, dtype, carrier), count).reshape(sizes))


def _listed(proto: Any, dtype: str, carrier: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.startswith("float8"):
        return np.frombuffer(proto.float8_val, np.uint8)
    values = getattr(proto, _LISTS[dtype])
    if dtype in _COMPLEX:
        parts = np.array(values, _COMPLEX[dtype])
        return parts[: parts.size // 2 * 2].view(carrier)
    if dtype in ("float16", "bfloat16"):
        return np.array(values, np.int64).astype(np.uint16).view(carrier)
    if carrier.kind in "iu" and dtype not in ("int64", "uint64"):
        return np.array(values, np.int64).astype(carrier)  # out of range: C's conversion
    return np.array(values, carrier)


def _padded(values: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """A list that is too short repeats its last element; an empty one means zeros."""
    if values.size >= count:
        return values[:count]
    last = values[-1:] if values.size else np.zeros(1, values.dtype)
    return np.concatenate([values, np.repeat(last, count - values.size)])


def _strings(proto: Any, count: int) -> np.ndarray[Any, Any]:
    if count > MAX_BYTES // 64:
        raise NotATensor(f"more than {MAX_BYTES // 64} strings")
    items = _string_content(proto.tensor_content, count) if proto.tensor_content else list(proto.string_val)[:count]
    items += [items[-1] if items else b""] * (count - len(items))
    out = np.empty(count, dtype=object)
    out[:] = items
    return out


def _string_content(content: bytes, count: int) -> list[bytes]:
    """All lengths as varints, then all characters."""
    lengths, position = [], 0
    for _ in range(count):
        length = shift = 0
        while True:
            if position >= len(content) or shift > 28:
                raise NotATensor("lengths of strings")
            byte = content[position]
            length, shift, position = length | (byte & 0x7F) << shift, shift + 7, position + 1
            if byte < 0x80:
                break
        lengths.append(length)
    if position + sum(lengths) != len(content):
        raise NotATensor("characters of strings")
    out = []
    for length in lengths:
        out.append(content[position : position + length])
        position += length
    return out


def encode(tensor: Tensor, proto: Any, as_content: bool = False) -> None:
    """Fill an empty ``proto``: the values in the list of their type, or in ``tensor_content``."""
    proto.dtype = NUMBERS[tensor.dtype]
    for size in tensor.array.shape:
        proto.tensor_shape.dim.add().size = size
    proto.tensor_shape.SetInParent()
    flat = tensor.array.ravel()
    if tensor.dtype == "string":
        proto.string_val.extend(flat.tolist())
    elif as_content:
        proto.tensor_content = flat.tobytes()
    elif tensor.dtype.startswith("float8"):
        proto.float8_val = flat.tobytes()
    elif tensor.dtype in _COMPLEX:
        getattr(proto, _LISTS[tensor.dtype]).extend(flat.view(_COMPLEX[tensor.dtype]).tolist())
    elif tensor.dtype in ("float16", "bfloat16"):
        proto.half_val.extend(flat.view(np.uint16).tolist())
    elif tensor.dtype in _LISTS:
        getattr(proto, _LISTS[tensor.dtype]).extend(flat.tolist())
    else:
        proto.tensor_content = flat.tobytes()
