"""Tensors <-> the JSON of TensorFlow Serving's REST API: rows ("instances", "predictions") or
columns ("inputs", "outputs").

JSON carries no dtypes, so both directions need the signature. Its numbers carry:

- float32 exactly, both ways, but for subnormal numbers. A request writes the shortest decimal of
  the value as a double. An answer's decimal has six digits if these give the value back, else nine;
  read as a double and rounded again to float32 it gives that value: nine digits lie too near to it
  for the first rounding to matter, and of all decimals of six digits none is affected (all were
  tried).
- float64 exactly in answers. In requests the server reads an integer of at most 2^53 times a power
  of ten up to 22 exactly, any other number to 3 units in the last place. Integers exactly, as
  nobody reads them through a float.
- NaN without its sign and its bits; infinities.
- No subnormal numbers: the server reads and writes them as 0.0.

All else is refused with `CannotSay`: subnormal numbers, other dtypes, which the server neither
reads nor writes (uint16, half, bfloat16, complex, quantised), rows of scalars, an empty batch in
rows, and a shape with a 0 that is not the last dimension (of an empty list the server sees no more
than that).
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from reference_impl.format.schema import SignatureDef, TensorInfo
from reference_impl.format.values import dtypes
from savedmodel_common.tensors import Tensor

from .examples import text

DTYPES = frozenset(
    [
        "bool",
        "string",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint32",
        "uint64",
        "float32",
        "float64",
    ]
)

BYTES_SUFFIX = "_bytes"  # of names: a string tensor whose values are always base64

_INTEGER_DIGITS = 32  # more than any dtype needs; Python takes quadratic time for longer ones
_MAX_RANK = 254  # TensorFlow's
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
# The server compares its parsed value, which may be a unit too large, with the largest float32.
# This value passes.
_NEARLY_MAX_FLOAT32 = 3.4028234e38


class CannotSay(ValueError):
    """Raised for a value that JSON, or the server's JSON reader, cannot represent."""


class Unreadable(ValueError):
    """Raised for an invalid answer: broken JSON, a wrong type or shape, a missing or extra key."""


# Requests


def columns(inputs: Mapping[str, Tensor]) -> dict[str, Any]:
    """{"inputs": {name: values}}: every input with a shape of its own. Raises CannotSay."""
    return {"inputs": {name: _values(name, inputs[name]) for name in sorted(inputs)}}


def rows(inputs: Mapping[str, Tensor], *, bare: bool) -> dict[str, Any]:
    """{"instances": [...]}, one for each index of the first dimension, which all inputs share.

    Raises CannotSay.

    ``bare``: an instance is the value itself, not {name: value}; for a signature of one input.
    """
    for name, tensor in inputs.items():
        if not tensor.array.ndim:
            raise CannotSay(f"input {name!r} is a scalar: it has no rows")
    sizes = {tensor.array.shape[0] for tensor in inputs.values()}
    if len(sizes) != 1:
        raise CannotSay(f"rows need inputs with one first dimension, not {sorted(sizes)}")
    if sizes == {0}:
        raise CannotSay('the server refuses an empty list of "instances"')
    values = {name: _values(name, inputs[name]) for name in sorted(inputs)}
    if bare:
        (only,) = values.values()
        return {"instances": only}
    return {"instances": [dict(zip(values, row)) for row in zip(*values.values())]}


def dumps(request: Mapping[str, Any]) -> bytes:
    """Return the text of a request; NaN and infinities have the names that the server knows."""
    return json.dumps(request, separators=(",", ":")).encode("ascii")


def _values(name: str, tensor: Tensor) -> Any:
    array, dtype = np.asarray(tensor.array), tensor.dtype
    _check_dtype(f"input {name!r}", dtype)
    if 0 in array.shape[:-1]:
        raise CannotSay(
            f"input {name!r} has the shape {list(array.shape)}: of a list without elements the"
            " server knows no more"
        )
    if dtype == "string":
        # A lone {"b64": "text"} is read as base64, even when b64 is the input's name.
        encode = _base64 if name.endswith(BYTES_SUFFIX) or name == "b64" else text
        out = np.empty(array.size, dtype=object)
        out[:] = [encode(item) for item in array.ravel().tolist()]
        return out.reshape(array.shape).tolist()
    if subnormal(tensor):
        raise CannotSay(
            f"input {name!r} has a subnormal number, which TensorFlow Serving reads as 0.0 over"
            " REST"
        )
    if dtype == "float32":
        wide = array.astype(np.float64)
        return np.where(
            np.abs(wide) == _MAX_FLOAT32, np.copysign(_NEARLY_MAX_FLOAT32, wide), wide
        ).tolist()
    return array.tolist()


def subnormal(tensor: Tensor) -> bool:
    """Return whether a tensor of float32 or float64 has a subnormal number."""
    if tensor.dtype not in ("float32", "float64"):
        return False
    size = np.abs(np.asarray(tensor.array))
    return bool(np.any((size > 0) & (size < np.finfo(size.dtype).tiny)))


def _base64(value: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(value).decode("ascii")}


def _check_dtype(what: str, dtype: str) -> None:
    if dtype not in DTYPES:
        raise CannotSay(
            f"{what} is {dtype}, which TensorFlow Serving neither reads from JSON nor writes as"
            " JSON"
        )


def check_signature(signature: SignatureDef, inputs: Mapping[str, Tensor]) -> None:
    """Check that the server's REST API can be asked this question.

    Raises CannotSay: no inputs, an omitted default (REST requires every input), an input or output
    of a dtype that JSON lacks.
    """
    if not signature.inputs:
        raise CannotSay(
            "a signature without inputs cannot be asked over REST: the server wants at least one"
        )
    left_out = sorted(set(signature.inputs) - set(inputs))
    if left_out and all(name in signature.defaults for name in left_out):
        raise CannotSay(
            f"over REST every input must be given; {left_out[0]!r} has a default and is left out"
        )
    for name in sorted(signature.outputs):
        if (
            signature.outputs[name].WhichOneof("encoding") != "composite_tensor"
        ):  # has no dtype, and no server answers it
            _check_dtype(f"output {name!r}", dtype_of(signature.outputs[name]))


# Answers


def loads(body: bytes) -> dict[str, Any]:
    """Return the object of an answer. Raises Unreadable.

    Strings that are not UTF-8 are kept as surrogates: the server writes bytes unchanged.
    """
    try:
        value = json.loads(
            body.decode("utf-8", "surrogateescape"), parse_int=_integer, object_pairs_hook=_object
        )
    except RecursionError as error:
        raise Unreadable("JSON nested too deep") from error
    except ValueError as error:
        raise Unreadable(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Unreadable(f"a JSON {type(value).__name__} where an object is due")
    return value


def _integer(digits: str) -> int:
    if len(digits) > _INTEGER_DIGITS:
        raise Unreadable(f"a number of {len(digits)} digits")
    return int(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unreadable("a JSON object with one key twice")
    return found


def read_columns(
    answer: Mapping[str, Any], outputs: Mapping[str, TensorInfo], *, more: bool = False
) -> dict[str, Tensor]:
    """Return the tensors of {"outputs": ...}; a single output is the value itself.

    Raises Unreadable, CannotSay.

    ``more``: whether the answer may have outputs that are not in ``outputs``; they are passed over.
    """
    value = _key(answer, "outputs")
    if len(outputs) == 1:
        return {name: _tensor(name, value, info) for name, info in outputs.items()}
    _names_of(value, outputs, "outputs", more)
    return {name: _tensor(name, value[name], outputs[name]) for name in sorted(outputs)}


def read_rows(
    answer: Mapping[str, Any], outputs: Mapping[str, TensorInfo], *, more: bool = False
) -> dict[str, Tensor]:
    """The tensors of {"predictions": [...]}; see `read_columns`."""
    found = _key(answer, "predictions")
    if not isinstance(found, list):
        raise Unreadable(f"predictions are a {type(found).__name__}")
    if len(outputs) == 1:
        return {name: _tensor(name, found, info) for name, info in outputs.items()}
    for index, row in enumerate(found):
        _names_of(row, outputs, f"prediction {index}", more)
    tensors = {}
    for name in sorted(outputs):
        column = [row[name] for row in found]
        tensors[name] = _tensor(name, column, outputs[name])
    return tensors


def _key(answer: Mapping[str, Any], key: str) -> Any:
    if key not in answer:
        raise Unreadable(f"no {key!r} in the answer, but {sorted(answer)[:10]}")
    return answer[key]


def _names_of(value: Any, outputs: Mapping[str, TensorInfo], what: str, more: bool) -> None:
    fits = isinstance(value, dict) and (
        set(value) >= set(outputs) if more else set(value) == set(outputs)
    )
    if not fits:
        found = sorted(value)[:10] if isinstance(value, dict) else f"a {type(value).__name__}"
        raise Unreadable(f"{what}: {found} where {sorted(outputs)} are due")


def _tensor(name: str, value: Any, info: TensorInfo) -> Tensor:
    dtype = dtype_of(info)
    _check_dtype(f"output {name!r}", dtype)
    try:
        shape, flat = _flatten(value)
        array = (
            _strings(flat, name.endswith(BYTES_SUFFIX))
            if dtype == "string"
            else numbers(flat, dtype)
        )
    except Unreadable as error:
        raise Unreadable(f"output {name!r}: {error}") from None
    try:
        return Tensor(dtype, array.reshape(_completed(name, shape, info)))
    except ValueError as error:  # more dimensions, or a larger product of them, than NumPy has
        raise (
            error if isinstance(error, CannotSay) else Unreadable(f"output {name!r}: {error}")
        ) from error


def _flatten(value: Any) -> tuple[list[int], list[Any]]:
    """Return shape and elements of nested lists, level by level."""
    shape: list[int] = []
    level = [value]
    while level and isinstance(level[0], list):
        size = len(level[0])
        if not all(isinstance(item, list) and len(item) == size for item in level):
            raise Unreadable(f"lists of different lengths at depth {len(shape)}")
        shape.append(size)
        if len(shape) > _MAX_RANK:
            raise Unreadable(f"more than {_MAX_RANK} dimensions")
        level = list(itertools.chain.from_iterable(level))
    return shape, level


def _completed(name: str, shape: list[int], info: TensorInfo) -> list[int]:
    """Return the shape, completed with the dimensions after a 0, which empty lists do not show."""
    if 0 not in shape:
        return shape
    declared = info.tensor_shape
    if declared.unknown_rank:
        raise CannotSay(
            f"output {name!r} has no elements, and the signature does not say how many dimensions"
        )
    sizes = [dim.size for dim in declared.dim]
    hidden = sizes[len(shape) :]
    if any(size < 0 for size in hidden):
        raise CannotSay(
            f"output {name!r} has no elements, and the signature leaves open the dimensions"
            f" {hidden}"
        )
    return [*shape, *hidden]


def numbers(flat: list[Any], dtype: str) -> np.ndarray[Any, Any]:
    """Return JSON numbers or truth values as a vector of a dtype that can hold each of them.

    Raises Unreadable.
    """
    if dtype == "bool":
        _check(flat, lambda item: item is True or item is False, dtype)
        return np.array(flat, dtype=bool)
    if dtype.startswith("float"):
        _check(
            flat,
            lambda item: type(item) is float or (type(item) is int and abs(item) <= 2**53),
            dtype,
        )
        wide = np.array(flat, dtype=np.float64)
        with np.errstate(over="ignore"):
            narrow = wide.astype(dtype)
        if np.any(np.isinf(narrow) & np.isfinite(wide)):
            raise Unreadable(f"a number too large for {dtype}")
        return narrow
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    _check(flat, lambda item: type(item) is int and least <= item <= most, dtype)
    return np.array(flat, dtype=dtype)


def _check(flat: list[Any], is_one: Any, dtype: str) -> None:
    for item in flat:
        if not is_one(item):
            raise Unreadable(
                f"{reprlib.repr(item)} ({type(item).__name__}) is not a value of {dtype}"
            )


def _strings(flat: list[Any], as_bytes: bool) -> np.ndarray[Any, Any]:
    out = np.empty(len(flat), dtype=object)
    out[:] = [_decoded(item) if as_bytes else _encoded(item) for item in flat]
    return out


def _decoded(item: Any) -> bytes:
    if not isinstance(item, dict) or list(item) != ["b64"] or not isinstance(item["b64"], str):
        raise Unreadable('a value that is not {"b64": ...}, as the name asks for')
    try:
        return base64.b64decode(item["b64"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unreadable(f"base64: {error}") from error


def _encoded(item: Any) -> bytes:
    if not isinstance(item, str):
        raise Unreadable(f"a {type(item).__name__} is not a string")
    try:
        return item.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise Unreadable(f"a string with half a character: {error.reason}") from error


def dtype_of(info: TensorInfo) -> str:
    """Return the name of the dtype in a signature. Raises DtypeError."""
    return dtypes.by_number(info.dtype).base.name
