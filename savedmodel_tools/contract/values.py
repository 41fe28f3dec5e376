"""Tensors inside a contract: as JSON where they are small, else as members of an ``.npz`` file
beside it.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from savedmodel_common.compare import COMPLEX, FLOATS, numbers
from savedmodel_common.tensors import CARRIERS, Tensor

INLINE_ELEMENTS = 64
INLINE_BYTES = 1024  # of strings

Array = npt.NDArray[Any]


def is_small(tensor: Tensor) -> bool:
    """Whether a tensor is written into the contract itself."""
    if tensor.array.size > INLINE_ELEMENTS:
        return False
    return tensor.dtype != "string" or sum(map(len, tensor.array.ravel().tolist())) <= INLINE_BYTES


def to_json(tensor: Tensor) -> dict[str, Any]:
    """``{"dtype", "shape", "values"}``, the values in row-major order; exact, but for the bits of a
    NaN.
    """
    flat = tensor.array.reshape(-1)
    values: list[Any]
    if tensor.dtype == "string":
        values = [_text(item) for item in flat.tolist()]
    elif tensor.dtype in COMPLEX:
        values = [[_number(item.real), _number(item.imag)] for item in flat]
    elif tensor.dtype in FLOATS:
        values = [_number(item) for item in numbers(Tensor(tensor.dtype, flat))]
    else:
        values = flat.tolist()
    return {"dtype": tensor.dtype, "shape": list(tensor.array.shape), "values": values}


def _number(item: Any) -> float | str:
    """The shortest decimal that is the number again; NaN and infinities as text."""
    if not math.isfinite(item):
        return str(float(item))
    short = float(str(item))
    return short if item.dtype.type(short) == item else float(item)


def _text(item: bytes) -> str | dict[str, str]:
    try:
        return item.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(item).decode("ascii")}


def from_json(value: Any) -> Tensor:
    """Return the tensor of such a dict. Raises ValueError for any other value."""
    if (
        not isinstance(value, dict)
        or set(value) != {"dtype", "shape", "values"}
        or not isinstance(value["values"], list)
    ):
        raise ValueError("a tensor has dtype, shape and values")
    dtype, shape, values = value["dtype"], value["shape"], value["values"]
    if dtype != "string" and dtype not in CARRIERS:
        raise ValueError(f"{dtype!r} is not a dtype of a tensor")
    if not isinstance(shape, list) or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError(f"{shape!r} is not a shape")
    if math.prod(shape) != len(values):
        raise ValueError(f"{len(values)} values of a tensor of shape {shape}")
    try:
        return Tensor(dtype, _array(dtype, values).reshape(shape))
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        raise ValueError(f"values of a {dtype} tensor: {error}") from None


def _array(dtype: str, values: list[Any]) -> Array:
    if dtype == "string":
        out = np.empty(len(values), dtype=object)
        out[:] = [_bytes(item) for item in values]
        return out
    if dtype in COMPLEX:
        pairs = [list(map(_float, item)) for item in values]
        return np.array(pairs, COMPLEX[dtype]).reshape(-1).view(dtype)
    if dtype in FLOATS:
        import ml_dtypes

        kind: Any = np.dtype(dtype if dtype == CARRIERS[dtype] else getattr(ml_dtypes, dtype))
        with np.errstate(over="ignore"):
            return (
                np.array([_float(item) for item in values], np.float64)
                .astype(kind)
                .view(CARRIERS[dtype])
            )
    wanted = bool if dtype == "bool" else int
    if any(type(item) is not wanted for item in values):
        raise ValueError(f"not all are {wanted.__name__}")
    return np.array(values, CARRIERS[dtype])


def _float(item: Any) -> float:
    if isinstance(item, bool) or not (
        isinstance(item, (int, float)) or item in ("nan", "inf", "-inf")
    ):
        raise ValueError(f"{item!r} is not a number")
    return float(item)


def _bytes(item: Any) -> bytes:
    if isinstance(item, str):
        return item.encode("utf-8")
    if isinstance(item, dict) and set(item) == {"base64"} and isinstance(item["base64"], str):
        return base64.b64decode(item["base64"], validate=True)
    raise ValueError(f"{item!r} is not a string")
