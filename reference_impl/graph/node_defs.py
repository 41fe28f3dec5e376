"""Fill in NodeDefs: constants, calls, control inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Optional, TypeVar, Union

from reference_impl.errors import DtypeError, ShapeError
from reference_impl.format import schema
from reference_impl.format.values import tensor_proto

T = TypeVar("T")


def string_tensor(value: Union[bytes, Sequence[bytes]]) -> Any:
    """Return a TensorProto that holds one string (rank 0) or several (rank 1)."""
    return _tensor(schema.DT_STRING, "string_val", value)


def int_tensor(value: Union[int, Sequence[int]]) -> Any:
    """Return a TensorProto that holds one int32 number (rank 0) or several (rank 1)."""
    return _tensor(schema.DT_INT32, "int_val", value)


def _tensor(dtype: int, field: str, value: Any) -> Any:
    tensor = scalar_tensor(dtype)
    if isinstance(value, (int, bytes)):
        value = [value]
    else:
        tensor.tensor_shape.dim.add(size=len(value))
    getattr(tensor, field).extend(value)
    return tensor


def scalar_tensor(dtype: int) -> Any:
    """Return a TensorProto of rank 0 without a value, which TensorFlow reads as zero, False or an
    empty string.
    """
    tensor = schema.TensorProto(dtype=dtype)
    tensor.tensor_shape.SetInParent()
    return tensor


def set_constant(node: schema.NodeDef, tensor: schema.TensorProto) -> None:
    """Set the TensorProto of a Const node."""
    node.attr["dtype"].type = tensor.dtype
    node.attr["value"].tensor.CopyFrom(tensor)


def constant_strings(node: Optional[schema.NodeDef]) -> Optional[list[bytes]]:
    """Return the elements of a Const node that holds a vector of strings; None for any other node,
    or None.
    """
    if node is None or node.op != "Const" or node.attr["dtype"].type != schema.DT_STRING:
        return None
    tensor = node.attr["value"].tensor
    if tensor.dtype != schema.DT_STRING or len(tensor.tensor_shape.dim) != 1:
        return None
    return list(tensor_proto.decode(tensor))


def strings_of_constant(node: Optional[schema.NodeDef], most: int) -> list[bytes]:
    """Return the first `most` elements of a Const node of strings; none for another node, or for a
    tensor that is damaged.
    """
    return _read_constant(node, tensor_proto.strings, most) or []


def integers_of_constant(node: Optional[schema.NodeDef], most: int) -> Optional[list[int]]:
    """Return the elements of a Const node of at most `most` integers; None for another node, or for
    a tensor that is damaged.
    """
    return _read_constant(node, tensor_proto.integers, most)


def _read_constant(
    node: Optional[schema.NodeDef],
    read: Callable[[schema.TensorProto, int], Optional[list[T]]],
    most: int,
) -> Optional[list[T]]:
    if (
        node is None or node.op != "Const" or "value" not in node.attr
    ):  # reading a missing attribute would add it
        return None
    try:
        return read(node.attr["value"].tensor, most)
    except (DtypeError, ShapeError):
        return None


def set_call(node: schema.NodeDef, function: str, signature: schema.OpDef) -> None:
    """Make a node call a function with this name and OpDef."""
    node.attr["f"].func.name = function
    node.attr["Tin"].list.type.extend(argument.type for argument in signature.input_arg)
    node.attr["Tout"].list.type.extend(argument.type for argument in signature.output_arg)


def add_controls(node: schema.NodeDef, names: Iterable[str]) -> None:
    """Make a node wait for other nodes.

    Nodes that it already waits for, and the node itself, are skipped.
    """
    present = {*node.input, f"^{node.name}"}
    for text in (f"^{name}" for name in names):
        if text not in present:
            present.add(text)
            node.input.append(text)


def clear_op_attributes(node: schema.NodeDef, kept: Collection[str] = ()) -> None:
    """Remove the attributes that belong to the op of a node.

    Attributes with a leading underscore fit every op and stay.
    """
    for key in [key for key in node.attr if not key.startswith("_") and key not in kept]:
        del node.attr[key]
