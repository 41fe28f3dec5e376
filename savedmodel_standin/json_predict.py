"""Predict over JSON: rows (``instances``, ``predictions``) and columns (``inputs``,
``outputs``).
"""

from __future__ import annotations

import base64
import binascii
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compat_matrix.workers.signature_wire import DTYPES
from savedmodel_common.tensors import Tensor
from savedmodel_standin import (
    json_numbers,
    json_reader,
    json_writer,
    tensor_protos,
)
from savedmodel_standin.errors import ServingError, invalid

INSTANCES, INPUTS, PREDICTIONS, OUTPUTS = "instances", "inputs", "predictions", "outputs"
_BLOCK = 1 << 12  # elements of an answer that are Python objects at a time
_INT32, _INT64, _UINT32, _UINT64 = (
    (-1 << 31, 1 << 31),
    (-1 << 63, 1 << 63),
    (0, 1 << 32),
    (0, 1 << 64),
)
_INTEGERS = {
    **dict.fromkeys(("int32", "int16", "int8", "uint8"), ("int_val", _INT32)),
    "int64": ("int64_val", _INT64),
    "uint32": ("uint32_val", _UINT32),
    "uint64": ("uint64_val", _UINT64),
}
_DECIMALS = ("float32", "float64")


def fill_request(
    body: bytes, request: Any, signature_inputs: Callable[[str], Mapping[str, Any]]
) -> bool:
    """Fill the inputs of a PredictRequest from a JSON text; return whether they were rows.

    ``signature_inputs`` gives ``{alias: TensorInfo}`` of the signature of that name (empty: the
    default one). Raises :class:`ServingError`.
    """
    document = json_reader.parse(body)
    fill_signature(document, request)
    name = request.model_spec.signature_name
    infos = signature_inputs(name)
    if not infos:
        raise invalid(f"Failed to get input map for signature: {name or 'DEFAULT'}")
    if INSTANCES in document and INPUTS in document:
        text = (
            f"Not formatted correctly expecting only one of '{INPUTS}' or '{INSTANCES}' keys to"
            " exist "
        )
        raise json_reader.format_error(document, text)
    if INSTANCES in document:
        rows = document[INSTANCES]
        if not isinstance(rows, list):
            raise json_reader.format_error(document, f"Expecting '{INSTANCES}' to be an list/array")
        if not rows:
            raise json_reader.format_error(document, f"No values in '{INSTANCES}' array")
        _fill_rows(rows, infos, request.inputs)
        return True
    if INPUTS in document:
        _fill_columns(document[INPUTS], infos, request.inputs)
        return False
    raise invalid("Missing 'inputs' or 'instances' key")


def fill_signature(document: Mapping[str, Any], request: Any) -> None:
    if "signature_name" in document:
        if not isinstance(document["signature_name"], str):
            text = "not formatted correctly. 'signature_name' key must be a string value."
            raise json_reader.format_error(document, text)
        request.model_spec.signature_name = json_reader.as_name(document["signature_name"])


def is_base64(value: Any) -> bool:
    """Return whether a value is an object with ``b64`` as its one member.

    With that member twice it is not.
    """
    if not isinstance(value, dict) or len(json_reader.members(value)) != 1:
        return False
    return isinstance(value.get("b64"), str)


def from_base64(value: Any) -> bytes:
    if not is_base64(value):
        raise json_reader.format_error(value, "not formatted correctly for base64 data")
    written = "".join(value["b64"].split())
    digits = written.rstrip("=.")
    padding = -len(digits) % 4
    try:
        if len(written) - len(digits) not in (0, padding):
            raise ValueError("too much or too little padding")
        return base64.b64decode(digits + "=" * padding, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("Unable to base64 decode") from None


def _fill_rows(rows: list[Any], infos: Mapping[str, Any], inputs: Any) -> None:
    if not isinstance(rows[0], dict) and len(infos) > 1:
        raise invalid(
            "instances is a plain list, but expecting list of objects as multiple input tensors"
            " required as per tensorinfo_map"
        )
    named = isinstance(rows[0], dict) and not is_base64(rows[0])
    shapes: dict[str, tuple[int, list[int]]] = {}
    for index, row in enumerate(rows):
        if (isinstance(row, dict) and not is_base64(row)) != named:
            wanted = (
                "Expecting object but got list" if named else "Expecting value/list but got object"
            )
            raise invalid(f"{wanted} at item {index} of input list")
        for name, value in row.items() if named else [(next(iter(infos)), row)]:
            try:
                _add_row(name, value, infos, shapes, inputs)
            except ServingError as error:
                key = f" key: {name}" if named else ""
                raise invalid(
                    f"Failed to process element: {index}{key} of '{INSTANCES}' list. Error: {error}"
                ) from None
        if named and set(row) != set(infos):
            raise invalid(
                f"Failed to process element: {index} of '{INSTANCES}' list. JSON object:"
                f" {json_reader.shown(row)} keys must be equal to: {','.join(sorted(infos))}"
            )
    for name, (_, shape) in shapes.items():
        inputs[name].dtype = infos[name].dtype
        _set_shape(inputs[name], [len(rows), *shape])


def _add_row(
    name: str,
    value: Any,
    infos: Mapping[str, Any],
    shapes: dict[str, tuple[int, list[int]]],
    inputs: Any,
) -> None:
    if json_reader.as_name(name) not in infos:
        raise invalid(f"JSON object: does not have named input: {name}")
    shape = _shape(value)
    count = _fill(value, _dtype(infos[name]), shape, inputs[name])
    size, first = shapes.setdefault(name, (count, shape))
    if count != size:
        raise invalid(f"Expecting tensor size: {size} but got: {count}")
    if shape != first:
        raise invalid(f"Expecting shape [{_joined(first)}] but got: [{_joined(shape)}]")


def _fill_columns(value: Any, infos: Mapping[str, Any], inputs: Any) -> None:
    if not isinstance(value, dict) or is_base64(value):
        if len(infos) > 1:
            raise invalid(
                "inputs is a plain value/list, but expecting an object as multiple input tensors"
                " required as per tensorinfo_map"
            )
        value = {next(iter(infos)): value}
    for name, info in sorted(infos.items()):
        if name not in value:
            raise invalid(f"Missing named input: {name} in 'inputs' object.")
        shape = _shape(value[name])
        inputs[name].dtype = info.dtype
        _set_shape(inputs[name], shape)
        _fill(value[name], _dtype(info), shape, inputs[name])


def _dtype(info: Any) -> str:
    return DTYPES.get(info.dtype, "invalid")


def _shape(value: Any) -> list[int]:
    """Return the shape according to the first elements."""
    sizes = []
    while isinstance(value, list):
        sizes.append(len(value))
        if not value:
            break
        value = value[0]
    return sizes


def _set_shape(proto: Any, sizes: list[int]) -> None:
    proto.tensor_shape.SetInParent()
    del proto.tensor_shape.dim[:]
    for size in sizes:
        proto.tensor_shape.dim.add().size = size


def _joined(sizes: list[int]) -> str:
    return ",".join(map(str, sizes))


def _fill(value: Any, dtype: str, shape: list[int], proto: Any, level: int = 0) -> int:
    """Append the elements to the list of their type; returns how many."""
    if not isinstance(value, list):
        if level != len(shape):
            raise invalid(
                f"JSON Value: {json_reader.shown(value)} found at incorrect level: {level + 1} in"
                f" the JSON DOM. Expected at level: {len(shape)}"
            )
        _append(value, dtype, proto)
        return 1
    if level >= len(shape):
        raise invalid(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise invalid(
            f"Encountered list at unexpected size: {len(value)} at level: {level} expected size:"
            f" {shape[level]}"
        )
    return sum(_fill(item, dtype, shape, proto, level + 1) for item in value)


def _append(value: Any, dtype: str, proto: Any) -> None:
    integer = isinstance(value, int) and not isinstance(value, bool)
    if dtype == "string" and isinstance(value, dict):
        proto.string_val.append(from_base64(value))
    elif isinstance(value, dict):
        raise _type_error(value, dtype)
    elif dtype in _DECIMALS:
        _append_decimal(value, dtype, proto)
    elif dtype in _INTEGERS:
        field, (low, high) = _INTEGERS[dtype]
        if not integer or not low <= value < high:
            raise _type_error(value, dtype)
        getattr(proto, field).append(value)
    elif dtype == "string":
        if not isinstance(value, str):
            raise _type_error(value, dtype)
        proto.string_val.append(value.encode("utf-8", "surrogateescape"))
    elif dtype == "bool":
        if not isinstance(value, bool):
            raise _type_error(value, dtype)
        proto.bool_val.append(value)
    else:
        text = (
            f"Conversion of JSON Value: {json_reader.shown(value)} to type:"
            f" {tensor_protos.spoken(dtype)}"
        )
        raise ServingError("UNIMPLEMENTED", text)


def _append_decimal(value: Any, dtype: str, proto: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _type_error(value, dtype)
    if dtype == "float32":
        proto.float_val.append(json_numbers.single(value))
    else:
        proto.double_val.append(value)


def _type_error(value: Any, dtype: str) -> ServingError:
    return invalid(
        f"JSON Value: {json_reader.shown(value)} Type: {json_reader.kind(value)} "
        f"is not of expected type: {tensor_protos.spoken(dtype)}"
    )


def response(outputs: Mapping[str, Tensor], rows: bool) -> bytes:
    """Return the JSON text of an answer, in the format of the request.

    Raises :class:`ServingError`.
    """
    if not outputs:
        raise invalid("Cannot convert empty tensor map to JSON")
    return _rows(outputs) if rows else _columns(outputs)


def _rows(outputs: Mapping[str, Tensor]) -> bytes:
    batch: int | None = None
    for name, tensor in sorted(outputs.items()):
        if tensor.array.ndim == 0:
            raise invalid(f"Tensor name: {name} has no shape information ")
        size = int(tensor.array.shape[0])
        if batch is not None and size != batch:
            raise invalid(
                f"Tensor name: {name} has inconsistent batch size: {size} expecting: {batch}"
            )
        batch = size
    predictions = (_row(outputs, index) for index in range(batch or 0))
    return json_writer.dumps({PREDICTIONS: predictions})


def _row(outputs: Mapping[str, Tensor], index: int) -> Any:
    """Return one prediction: an object, or the value itself where there is only one output."""
    values = {}
    for name, tensor in sorted(outputs.items()):
        rows = _nested(name, tensor.dtype, tensor.array[index, ...])
        values[name] = json_writer.Line(rows)
    return values if len(values) > 1 else next(iter(values.values()))


def _columns(outputs: Mapping[str, Tensor]) -> bytes:
    found = {
        name: _nested(name, tensor.dtype, tensor.array) for name, tensor in sorted(outputs.items())
    }
    return json_writer.dumps({OUTPUTS: found if len(found) > 1 else next(iter(found.values()))})


def _nested(name: str, dtype: str, array: Any) -> Any:
    """Return nested iterators; a scalar is a bare value.

    Elements become Python objects a block at a time, never all at once.
    """
    if array.ndim > 1:
        return (_nested(name, dtype, part) for part in array)
    if array.ndim:
        blocks = (array[start : start + _BLOCK] for start in range(0, array.size, _BLOCK))
        return itertools.chain.from_iterable(_elements(name, dtype, block) for block in blocks)
    (value,) = _elements(name, dtype, array)
    return value


def _elements(name: str, dtype: str, array: Any) -> Iterable[Any]:
    try:
        return json_writer.elements(array, dtype, dtype == "string" and name.endswith("_bytes"))
    except ValueError:
        raise invalid(
            f"Failed to write JSON value for tensor type: {tensor_protos.spoken(dtype)}"
        ) from None
