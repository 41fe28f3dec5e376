"""Check attributes that crash TensorFlow instead of raising an error: inconsistent shapes and
tensors.

TensorFlow checks most of a graph and reports errors. It does not check the shape of a constant or
of an attribute everywhere: a negative size, too many dimensions, a product beyond 64 bits or bytes
that do not fit the shape abort the process in C++. A tensor of a few bytes may also claim more
elements than fit into memory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Optional, TypeVar

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.values import dtypes
from reference_impl.format.values.shapes import check_rank
from reference_impl.format.values.tensor_proto import STRING_COST
from reference_impl.graph import variant_values
from reference_impl.graph.edges import data_inputs, input_source
from reference_impl.graph.node_defs import integers_of_constant

DTYPES = frozenset(
    number for number in schema.DataType.values() if 0 < number < 100
)  # without references
# Numbers that kernels use unchecked, as a size to allocate and as the index of a column.
# Attribute -> name of the limit. The op itself has the least values.
_BOUNDS = {
    "vocab_size": "TABLE_ENTRIES",
    "key_index": "TABLE_COLUMNS",
    "value_index": "TABLE_COLUMNS",
}
# Op -> the input with the length of the list or array of tensors that it makes.
LENGTHS = {
    "TensorListReserve": 1,
    "TensorListResize": 1,
    "TensorArray": 0,
    "TensorArrayV2": 0,
    "TensorArrayV3": 0,
}
TABLE_OPS = ("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")


def text_of(attributes: Mapping[str, schema.AttrValue], key: str) -> str:
    """Return a string attribute, or "" if it is missing."""
    return attributes[key].s.decode("utf-8", "replace") if key in attributes else ""


def argument_attributes(function: schema.FunctionDef, index: int) -> Mapping[str, schema.AttrValue]:
    """Return the attributes of an argument; reading `arg_attr` directly would add missing ones."""
    return function.arg_attr[index].attr if index in function.arg_attr else {}


def argument_shape(function: schema.FunctionDef, index: int) -> Optional[schema.TensorShapeProto]:
    """Return the shape that the exporter recorded for an argument, or None."""
    attributes = argument_attributes(function, index)
    shapes = attributes["_output_shapes"].list.shape if "_output_shapes" in attributes else ()
    return shapes[0] if shapes else None


Name = TypeVar("Name", bound=str)


class Text(NamedTuple):
    """A text in an attribute of a node: the function of the node, the node, the text."""

    function: str
    node: schema.NodeDef
    value: str


def texts_of(functions: Mapping[Name, schema.FunctionDef], key: str) -> list[Text]:
    """Return the texts, except empty ones, that nodes of functions have in the attribute `key`."""
    found = []
    for name, function in functions.items():
        for node in function.node_def:
            text = text_of(node.attr, key)
            if text:
                found.append(Text(name, node, text))
    return found


def argument_shapes(
    function: schema.FunctionDef,
) -> list[Optional[schema.TensorShapeProto]]:
    """Return what `argument_shape` gives for each argument of a function."""
    return [argument_shape(function, index) for index in range(len(function.signature.input_arg))]


def check(
    attributes: Mapping[str, schema.AttrValue], keys: Iterable[str], file: str, node: str
) -> None:
    """Check the shapes and tensors in those attributes of a node, a function or an argument whose
    names are in `keys`.

    Raises:
      ShapeError: a size is negative, there are too many dimensions or elements, or the bytes of a
        tensor do not fit its shape.
      LimitError: a tensor claims more than `limits.TENSOR_BYTES`.
      MalformedError: a variant has damaged metadata.
    """
    for key in keys:
        if key not in attributes:
            continue
        value = attributes[key]
        try:
            for tensor in (value.tensor,) if value.HasField("tensor") else value.list.tensor:
                check_item(tensor, "tensor", key)
            for shape in (value.shape,) if value.HasField("shape") else value.list.shape:
                check_item(shape, "shape", key)
        except errors.SavedModelError as error:
            error.file, error.node = file, node
            raise


def check_loop(node: schema.NodeDef) -> None:
    """Check how many steps of a loop may run at once.

    Raises LimitError, which does not name the node.
    """
    if (
        "parallel_iterations" in node.attr
        and not 1 <= node.attr["parallel_iterations"].i <= limits.PARALLEL_ITERATIONS
    ):
        reason = f"attribute 'parallel_iterations' is {node.attr['parallel_iterations'].i}"
        raise errors.LimitError(reason, limit="PARALLEL_ITERATIONS")


def literal_lengths(nodes: Iterable[schema.NodeDef]) -> Iterator[tuple[schema.NodeDef, int]]:
    """Yield the nodes of a function that make a list of tensors, with its length where that is a
    constant.
    """
    making = [node for node in nodes if node.op in LENGTHS]
    constants = {node.name: node for node in nodes if node.op == "Const"} if making else {}
    for node in making:
        given = data_inputs(node)[LENGTHS[node.op] :]
        values = (
            integers_of_constant(constants.get(input_source(given[0], True)), 1) if given else None
        )
        yield from ((node, length) for length in values or ())


def check_item(item: Any, field: str, key: str) -> None:
    """Check a tensor or a shape (the `field` of an AttrValue) of the attribute `key`.

    Raises what `check` raises, without the node.
    """
    try:
        if field == "tensor":
            check_tensor(item)
        else:
            check_shape(item, -1)
    except (errors.ShapeError, errors.LimitError, errors.MalformedError) as error:
        error.reason = f"attribute {key!r}: {error.reason}"
        raise


def check_table(node: schema.NodeDef, file: str, where: str) -> None:
    """Check the numbers with which a node fills a table from a text file.

    Raises LimitError: the number of entries or columns is over its limit.
    """
    for key, limit in _BOUNDS.items():
        if key in node.attr and node.attr[key].i > getattr(limits, limit):
            raise errors.LimitError(
                f"attribute {key!r} is {node.attr[key].i}", limit=limit, file=file, node=where
            )


def check_tensor(tensor: schema.TensorProto) -> None:
    """Check a tensor as `check` does."""
    if tensor.tensor_shape.unknown_rank:
        raise errors.ShapeError("a tensor has an unknown rank")
    if tensor.dtype not in DTYPES:
        raise errors.MalformedError(
            f"a tensor has the dtype {tensor.dtype}, which does not exist or is a reference"
        )
    for value in tensor.variant_val:
        _check_variant(value)
    count, itemsize = check_shape(tensor.tensor_shape, 0), _itemsize(tensor.dtype)
    if count * (itemsize or STRING_COST) > limits.TENSOR_BYTES:
        sizes = [dim.size for dim in tensor.tensor_shape.dim]
        raise errors.LimitError(f"a tensor of shape {sizes}", limit="TENSOR_BYTES")
    if itemsize and tensor.tensor_content and len(tensor.tensor_content) != count * itemsize:
        raise errors.ShapeError(
            f"{len(tensor.tensor_content)} bytes for {count} elements of {itemsize} bytes"
        )


def _check_variant(value: schema.VariantTensorDataProto) -> None:
    """Check a list of tensors and its tensors. Protobuf limits the depth of tensors in tensors."""
    if (
        value.type_name != variant_values.TENSOR_LIST
    ):  # a damaged dataset ends the process; nobody writes such constants
        raise errors.MalformedError(
            f"a constant holds a variant of the type {value.type_name!r}, not a list of tensors"
        )
    check_shape(variant_values.element_shape(value), -1)
    for tensor in value.tensors:
        check_tensor(tensor)


def check_shape(shape: schema.TensorShapeProto, least: int) -> int:
    """Return the number of elements, unknown sizes counted as one. Raises ShapeError."""
    check_rank(len(shape.dim), limits.NODE_RANK)
    count, largest = 1, 1
    for dim in shape.dim:
        if dim.size < least:
            raise errors.ShapeError(f"a dimension has the size {dim.size}")
        count *= abs(dim.size)
        largest *= max(abs(dim.size), 1)
        if largest > limits.SHAPE_ELEMENTS:
            raise errors.ShapeError(f"a shape has more than {limits.SHAPE_ELEMENTS} elements")
    return count


@functools.cache
def _itemsize(number: int) -> int:
    """Return the bytes of an element, 0 for strings and types without plain bytes.

    TensorFlow itself refuses unknown types.
    """
    try:
        return dtypes.by_number(number).itemsize or 0
    except errors.DtypeError:
        return 0
