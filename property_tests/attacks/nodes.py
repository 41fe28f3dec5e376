"""Attacks by the attributes of nodes: numbers, types and constants that TensorFlow's C++ trusts in
a function.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

from property_tests.attacks import forge
from reference_impl.format import schema
from reference_impl.format.wire import write_varint

TENSOR_LIST = "tensorflow::TensorList"
DATASET = "tensorflow::data::WrappedDatasetVariant"


def initialised_by(folder: Path, *nodes: Any) -> Any:
    """Write a TF 2 model whose table also runs these nodes when it is initialised; returns the
    message.
    """
    message = forge.seed("table_static")
    for made in message.meta_graphs[0].graph_def.library.function:
        if any(node.op == "LookupTableImportV2" for node in made.node_def):
            made.node_def.extend(nodes)
            made.control_ret["run"] = nodes[-1].name
            made.signature.control_output.append("run")
    return _write(folder, message)


def _write(folder: Path, message: Any) -> Any:
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)
    return message


def node(name: str, op: str, inputs: tuple[str, ...] = (), **attributes: str) -> Any:
    """A node whose attributes are given as text: ``N="i: -5"``."""
    made = schema.NodeDef(name=name, op=op, input=inputs)
    for key, text in attributes.items():
        made.attr[key].CopyFrom(schema.parse_text(schema.AttrValue, text))
    return made


def number(name: str, value: int, dtype: str = "DT_INT32") -> Any:
    """A constant of one number."""
    field = {"DT_INT32": "int_val", "DT_FLOAT": "float_val"}[dtype]
    return node(
        name,
        "Const",
        dtype=f"type: {dtype}",
        value=f"tensor {{ dtype: {dtype} tensor_shape {{}} {field}: {value} }}",
    )


def variant(
    name: str, metadata: bytes, type_name: str = TENSOR_LIST, tensor: Optional[Any] = None
) -> Any:
    """A constant that holds a value of a C++ type."""
    made = node(
        name,
        "Const",
        dtype="type: DT_VARIANT",
        value="tensor { dtype: DT_VARIANT tensor_shape {} }",
    )
    held = made.attr["value"].tensor.variant_val.add(type_name=type_name, metadata=metadata)
    if tensor is not None:
        held.tensors.append(tensor)
    return made


def empty_list() -> bytes:
    """The metadata of a sound list of tensors without elements: float32, of any length and
    shape.
    """
    return write_varint(0) + write_varint(schema.DT_FLOAT) + write_varint(2**64 - 1) + b"\x18\x01"


def packed(count: int) -> tuple[Any, Any]:
    """A node that packs so many tensors, of which it has one."""
    pack = node("run", "Pack", ("one:output:0",), N=f"i: {count}", T="type: DT_FLOAT", axis="i: 0")
    return number("one", 1, "DT_FLOAT"), pack


def case_without_branches(folder: Path) -> None:
    """A Case without branches."""
    case = node(
        "run",
        "Case",
        ("one:output:0",),
        branches="list {}",
        Tin="list {}",
        Tout="list {}",
        output_shapes="list {}",
    )
    initialised_by(folder, number("one", 1), case)


def _loop(function: str, **attributes: str) -> tuple[Any, Any]:
    called = f'func {{ name: "{function}" }}'
    made = node(
        "run",
        "While",
        ("one:output:0",),
        T="list { type: DT_INT32 }",
        cond=called,
        body=called,
        **attributes,
    )
    return number("one", 1), made


def loop_without_a_body(folder: Path) -> None:
    """A While whose condition and body are not in the library."""
    initialised_by(folder, *_loop("nobody"))


def loop_of_a_nameless_body(folder: Path) -> None:
    """A While whose condition and body have empty names."""
    initialised_by(folder, *_loop(""))


def loop_of_all_steps_at_once(folder: Path) -> None:
    """A While of which 9223372036854775807 steps may run at once."""
    initialised_by(folder, *_loop("nobody", parallel_iterations="i: 9223372036854775807"))


def shape_of_2_to_the_62(folder: Path) -> None:
    """A function with a placeholder of the shape [4611686018427387904, -1]."""
    shape = "shape { dim { size: 4611686018427387904 } dim { size: -1 } }"
    initialised_by(folder, node("run", "Placeholder", dtype="type: DT_FLOAT", shape=shape))


def fewer_tensors_than_none(folder: Path) -> None:
    """A Pack of -5 tensors."""
    initialised_by(folder, *packed(-5))


def two_billion_tensors(folder: Path) -> None:
    """A Pack of 2147483647 tensors."""
    initialised_by(folder, *packed(2**31 - 1))


def number_in_place_of_a_type(folder: Path) -> None:
    """A Pack whose type is a number."""
    one, pack = packed(1)
    pack.attr["T"].i = 7
    initialised_by(folder, one, pack)


def constant_of_two_dtypes(folder: Path) -> None:
    """A constant of float32 whose value is an uint64, which is multiplied."""
    made = number("two", 2, "DT_FLOAT")
    made.attr["value"].tensor.dtype = schema.DT_UINT64
    initialised_by(
        folder, made, node("run", "Mul", ("two:output:0", "two:output:0"), T="type: DT_FLOAT")
    )


def constant_reference(folder: Path) -> None:
    """A constant whose value is a reference to a variable."""
    made = number("run", 2)
    made.attr["value"].tensor.dtype = schema.DT_FLOAT_REF
    initialised_by(folder, made)


def damaged_tensor_list(folder: Path) -> None:
    """A constant list of tensors that claims 2^40 elements."""
    initialised_by(folder, variant("list", write_varint(2**40)), length("list"))


def damaged_dataset_constant(folder: Path) -> None:
    """A constant that holds a dataset of one byte."""
    initialised_by(folder, variant("list", b"x", DATASET), length("list"))


def captured_tensor_list(folder: Path) -> None:
    """A captured constant of the main graph that is a list of tensors whose shape is negative."""
    message = forge.seed("table_static")
    graph = message.meta_graphs[0]
    graph.graph_def.node.append(
        variant(
            "list", empty_list()[:-2] + b"\x12\x02\x08\x03\x12\x0b\x08" + write_varint(2**64 - 9)
        )
    )
    nodes = graph.object_graph_def.nodes
    nodes[0].children.add(node_id=len(nodes), local_name="list")
    nodes.add().constant.operation = "list"
    _write(folder, message)


def list_of_two_billion(folder: Path) -> None:
    """A list of tensors that is made with room for 2147483647 of them."""
    reserve = node(
        "list",
        "TensorListReserve",
        ("shape:output:0", "size:output:0"),
        element_dtype="type: DT_FLOAT",
        shape_type="type: DT_INT32",
    )
    initialised_by(
        folder, number("shape", -1), number("size", 2**31 - 1), reserve, length("list:handle")
    )


def length(source: str) -> Any:
    """A node that asks how long a list is."""
    return node(
        "run", "TensorListLength", (f"{source}:0" if ":" in source else f"{source}:output:0",)
    )


def list_of_a_computed_length(folder: Path) -> None:
    """A list of tensors that is made with room for 2147483646 of them, a number that is added
    up.
    """
    reserve = node(
        "list",
        "TensorListReserve",
        ("shape:output:0", "size:z:0"),
        element_dtype="type: DT_FLOAT",
        shape_type="type: DT_INT32",
    )
    size = node("size", "AddV2", ("half:output:0", "half:output:0"), T="type: DT_INT32")
    initialised_by(
        folder, number("shape", -1), number("half", 2**30 - 1), size, reserve, length("list:handle")
    )


def array_of_a_computed_length(folder: Path) -> None:
    """An array of tensors that is made with room for 2147483646 of them, a number that is added
    up.
    """
    array = node("array", "TensorArrayV3", ("size:z:0",), dtype="type: DT_FLOAT")
    size = node("size", "AddV2", ("half:output:0", "half:output:0"), T="type: DT_INT32")
    initialised_by(folder, number("half", 2**30 - 1), size, array, node("run", "NoOp", ("^array",)))


def shape_of_300_dimensions(folder: Path) -> None:
    """A function with a placeholder of 300 dimensions."""
    shape = f"shape {{ {'dim { size: 1 } ' * 300} }}"
    initialised_by(folder, node("run", "Placeholder", dtype="type: DT_FLOAT", shape=shape))


def noted_shape_below_zero(folder: Path) -> None:
    """A constant that says of itself that its size is -7."""
    made = number("run", 1)
    made.attr["_output_shapes"].list.shape.add().dim.add(size=-7)
    initialised_by(folder, made)


def beside_a_node_of_nowhere(folder: Path) -> None:
    """A node of the main graph that is to be placed where a node is that does not exist."""
    message = forge.seed("table_static")
    made = number("run", 1)
    made.attr["_class"].list.s.append(b"loc:@nowhere")
    message.meta_graphs[0].graph_def.node.append(made)
    _write(folder, message)


def argument_of_no_dtype(folder: Path) -> None:
    """A function that takes an argument of the dtype 9999."""
    message = forge.seed("table_static")
    made = forge.function(message.meta_graphs[0], "odd")
    made.signature.input_arg.add(name="x", type=9999)
    _write(folder, message)


def device_as_a_path(folder: Path) -> None:
    """A table on a device that is called like a path."""
    message = forge.seed("table_static")
    for item in message.meta_graphs[0].object_graph_def.nodes:
        if item.WhichOneof("kind") == "resource":
            item.resource.device = "/job:../../x:;"
    _write(folder, message)


def number_of_33_bits(folder: Path) -> None:
    """A pooling over 2147483648 rows, a number that the graph optimizer reads as one of 32 bits."""
    sizes = "list { i: 1 i: 2147483648 i: 2 i: 1 }"
    pool = node(
        "run",
        "MaxPool",
        ("one:output:0",),
        T="type: DT_FLOAT",
        ksize=sizes,
        strides=sizes,
        padding='s: "SAME"',
    )
    initialised_by(folder, number("one", 1, "DT_FLOAT"), pool)


def image_of_no_dimension(folder: Path) -> None:
    """A convolution of a number, of which the kernel of oneDNN takes four dimensions for
    granted.
    """
    strides = "list { i: 1 i: 1 i: 1 i: 1 }"
    attributes = {"T": "type: DT_FLOAT", "strides": strides, "padding": 's: "SAME"'}
    convolution = node("run", "Conv2D", ("image:y:0", "filter:output:0"), **attributes)
    image = node("image", "Neg", ("one:output:0",), T="type: DT_FLOAT")
    kernel = number("filter", 1, "DT_FLOAT")
    for _ in range(4):
        kernel.attr["value"].tensor.tensor_shape.dim.add(size=1)
    initialised_by(folder, number("one", 1, "DT_FLOAT"), image, kernel, convolution)


def paddings_that_nothing_asks_for(folder: Path) -> None:
    """A convolution without padding that lists a padding of -1."""
    ones = "list { i: 1 i: 1 i: 1 i: 1 }"
    attributes = {
        "T": "type: DT_FLOAT",
        "strides": ones,
        "dilations": ones,
        "padding": 's: "VALID"',
    }
    made = node(
        "run",
        "Conv2D",
        ("image:output:0", "image:output:0"),
        explicit_paddings="list { i: -1 }",
        **attributes,
    )
    image = number("image", 1, "DT_FLOAT")
    for _ in range(4):
        image.attr["value"].tensor.tensor_shape.dim.add(size=1)
    initialised_by(folder, image, made)


def keys_of_an_example(folder: Path) -> None:
    """A parser of examples whose key is three texts, where the kernel takes one for granted."""
    key, text = (node(name, "Const", dtype="type: DT_STRING") for name in ("key", "text"))
    for made in (key, text):
        made.attr["value"].tensor.dtype = schema.DT_STRING
        made.attr["value"].tensor.string_val.append(b"")
        made.attr["value"].tensor.tensor_shape.dim.add(size=3 if made is key else 1)
    parse = node(
        "run",
        "ParseExample",
        ("text:output:0", "text:output:0", "key:output:0"),
        Nsparse="i: 1",
        Ndense="i: 0",
        sparse_types="list { type: DT_STRING }",
        Tdense="list {}",
        dense_shapes="list {}",
    )
    initialised_by(folder, key, text, parse)


def axis_of_no_number(folder: Path) -> None:
    """A concatenation whose axis is an empty list, where the graph optimizer takes one number."""
    axis = number("axis", 0)
    axis.attr["value"].tensor.tensor_shape.dim.add(size=0)
    one = number("one", 1)
    one.attr["value"].tensor.tensor_shape.dim.add(size=1)
    joined = node(
        "run",
        "ConcatV2",
        ("one:output:0", "one:output:0", "axis:output:0"),
        N="i: 2",
        T="type: DT_INT32",
        Tidx="type: DT_INT32",
    )
    initialised_by(folder, axis, one, joined)


def gather_of_many_batches(folder: Path) -> None:
    """A gather with 2147483647 batch dimensions: the graph optimizer aborts."""
    table, ids, axis = number("table", 1), number("ids", 0), number("axis", 0)
    for made in (table, ids):
        made.attr["value"].tensor.tensor_shape.dim.add(size=1)
    gather = node(
        "run",
        "GatherV2",
        ("table:output:0", "ids:output:0", "axis:output:0"),
        batch_dims="i: 2147483647",
        Tparams="type: DT_INT32",
        Tindices="type: DT_INT32",
        Taxis="type: DT_INT32",
    )
    initialised_by(folder, table, ids, axis, gather)


def device_of_a_node(folder: Path) -> None:
    """A node of a function on a device that is called like a path."""
    made = number("run", 1)
    made.device = "/job:../../x:;"
    initialised_by(folder, made)


def array_of_two_sizes(folder: Path) -> None:
    """A TF 1 model whose signature uses a TensorArray with two sizes."""
    message = forge.model()
    graph = message.meta_graphs[0]
    array = node("array", "TensorArrayV3", ("size", "size"), dtype="type: DT_FLOAT")
    graph.graph_def.node.extend(
        [number("size", 2), array, node("x", "TensorArraySizeV3", ("array", "array:1"))]
    )
    forge.signature(graph, kind=schema.DT_INT32)
    forge.write(folder, message)
