"""Convert OpDef, KernelDef and AttrValue messages to :mod:`~savedmodel_tools.skew.records`."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Collection, Iterator
from typing import Any

from reference_impl.errors import DtypeError
from reference_impl.format import schema
from reference_impl.format.values.dtypes import by_number
from reference_impl.format.wire import BYTES, VARINT, fields
from savedmodel_tools.skew.records import (
    Attr,
    Kernel,
    Op,
    kernel_values,
)

_ANY_DEVICE = "DEFAULT"  # the device type of kernels for every device that has none of its own


def dtype_name(number: int) -> str:
    """``float32``; ``number 77`` for a number without a name."""
    try:
        return by_number(number).name
    except DtypeError:
        return f"number {number}"


def plain_value(value: schema.AttrValue) -> Any:
    """Return an attr's value as JSON: equal values are equal JSON for attrs of one type.

    Types are written as their names, shapes as ``[2, -1]`` or ``"?"`` in ``{"shape": ...}``,
    functions as ``{"func": name}``,
    tensors
    and bytes that are not text as ``{"bytes": base64}``, floats without a JSON number as ``"inf"``
    and the like. None without a
    value.
    """
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "list":
        found: list[Any] = []
        for field, items in value.list.ListFields():
            found += [_scalar(field.name, item) for item in items]
        return found
    return _scalar(kind, getattr(value, kind))


def _scalar(kind: str, value: Any) -> Any:
    if kind == "s":
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"bytes": base64.b64encode(value).decode("ascii")}
    if kind == "type":
        return dtype_name(value)
    if kind == "f":
        return value if value - value == 0 else str(value)
    if kind == "shape":
        return {"shape": "?" if value.unknown_rank else [dim.size for dim in value.dim]}
    if kind == "tensor":
        return {
            "bytes": base64.b64encode(value.SerializeToString(deterministic=True)).decode("ascii")
        }
    if kind == "func":
        return {"func": value.name}
    return value  # i, b, placeholder


def op_record(
    definition: schema.OpDef, library: str, kernels: frozenset[Kernel] | None, python: bool = False
) -> Op:
    """Return the record of an OpDef. ``library``, ``kernels``, ``python``: as in :class:`Op`."""
    attrs = tuple(
        Attr(
            attr.name,
            attr.type,
            plain_value(attr.default_value) if attr.HasField("default_value") else None,
            tuple(sorted(map(str, plain_value(attr.allowed_values) or ())))
            if attr.HasField("allowed_values")
            else None,
            attr.minimum if attr.has_minimum else None,
        )
        for attr in sorted(definition.attr, key=lambda item: item.name)
    )
    deprecated = definition.deprecation
    return Op(
        definition.name,
        f"{_arguments(definition.input_arg)} -> {_arguments(definition.output_arg)}".strip(),
        attrs,
        definition.is_stateful,
        (deprecated.version, deprecated.explanation)
        if definition.HasField("deprecation")
        else None,
        library,
        kernels,
        python,
    )


def _arguments(arguments: Any) -> str:
    return ", ".join(f"{argument.name}: {_argument_type(argument)}" for argument in arguments)


def _argument_type(argument: schema.OpDef.ArgDef) -> str:
    text = argument.type_list_attr or argument.type_attr or dtype_name(argument.type)
    if argument.number_attr:
        text = f"{argument.number_attr}*{text}"
    return f"Ref({text})" if argument.is_ref else text


def kernels_of(data: bytes, devices: Collection[str]) -> dict[str, set[Kernel]]:
    """Map each op of a serialized KernelList to its kernels for these device types.

    Kernels with a label must be requested by name and are left out.

    Raises ValueError for bytes that are not a KernelList.
    """
    found: dict[str, set[Kernel]] = {}
    for kernel in _fields(data, 1):
        if _text(kernel, 2) in (*devices, _ANY_DEVICE) and not _text(kernel, 5):
            found.setdefault(_text(kernel, 1), set()).update(_constraints(list(_fields(kernel, 3))))
    return found


def _constraints(constraints: list[bytes]) -> Iterator[Kernel]:
    """Return every combination of attr values that a kernel takes: dtypes, and also strings,
    numbers and flags.
    """
    combinations: list[Kernel] = [()]
    for constraint in constraints:
        name = _text(constraint, 1)
        values = kernel_values(
            plain_value(schema.AttrValue.FromString(b"".join(_fields(constraint, 2)))) or []
        )
        if not values:
            raise ValueError(f"a kernel's constraint of attr '{name}' lists no values")
        pairs = itertools.product(combinations, values)
        combinations = [(*known, (name, value)) for known, value in pairs]
    for combination in combinations:
        yield tuple(sorted(combination))


def _text(data: bytes, number: int) -> str:
    return b"".join(list(_fields(data, number))[-1:]).decode("utf-8")


def _fields(data: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the length-delimited fields of this number.

    KernelList has only such fields and, for priorities, varints.
    """
    for number, wire, content, _ in fields(data):
        if wire not in (VARINT, BYTES):
            raise ValueError("no KernelList")
        if wire == BYTES and number == wanted:
            yield content
