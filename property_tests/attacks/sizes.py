"""Attacks by the size of what an initialiser makes: models of a few kilobytes whose load takes
gigabytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from property_tests.attacks import forge
from reference_impl.format import schema

GIGA = 1_000_000_000


def _initialiser(message: Any) -> Any:
    """The function that fills the table of the model."""
    functions = message.meta_graphs[0].graph_def.library.function
    return next(
        made
        for made in functions
        if any(node.op == "LookupTableImportV2" for node in made.node_def)
    )


def fill(body: Any, name: str, *shape: int) -> str:
    """A tensor of ones."""
    node = forge.node_of(
        body,
        name,
        "Fill",
        forge.numbers(body, f"{name}_shape", *shape),
        forge.numbers(body, f"{name}_one", 1, scalar=True),
    )
    node.attr["T"].type = node.attr["index_type"].type = schema.DT_INT32
    return forge.tensor(body, name)


def together(body: Any, name: str, *parts: str) -> str:
    """The tensors one behind the other."""
    node = forge.node_of(
        body, name, "ConcatV2", *parts, forge.numbers(body, f"{name}_axis", 0, scalar=True)
    )
    node.attr["N"].i = len(parts)
    node.attr["T"].type = node.attr["Tidx"].type = schema.DT_INT32
    return forge.tensor(body, name)


def _used(body: Any, tensor: str) -> None:
    """Let the initialiser wait for something that needs a tensor."""
    node = forge.node_of(body, "evil", "Max", tensor, forge.numbers(body, "axis", 0, scalar=True))
    node.attr["T"].type = node.attr["Tidx"].type = schema.DT_INT32
    node.attr["keep_dims"].b = False
    body.control_ret["evil"] = "evil"
    body.signature.control_output.append("evil")


def _write(folder: Path, message: Any) -> None:
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def fill_in_initializer(folder: Path) -> None:
    """A table whose initialiser makes a thousand million equal numbers."""
    message = forge.seed("table_static")
    body = _initialiser(message)
    _used(body, fill(body, "filled", GIGA))
    _write(folder, message)


def range_of_computed_length(folder: Path) -> None:
    """The same by a Range up to a product of two small numbers."""
    message = forge.seed("table_static")
    body = _initialiser(message)
    few = forge.numbers(body, "few", 40_000, scalar=True)
    product = forge.node_of(body, "product", "Mul", few, few)
    product.attr["T"].type = schema.DT_INT32
    zero, one = (forge.numbers(body, f"number_{value}", value, scalar=True) for value in (0, 1))
    forge.node_of(body, "range", "Range", zero, "product:z:0", one).attr[
        "Tidx"
    ].type = schema.DT_INT32
    _used(body, "range:output:0")
    _write(folder, message)


def growth_by_concat(folder: Path) -> None:
    """The same by a vector that is put behind itself again and again."""
    message = forge.seed("table_static")
    body = _initialiser(message)
    tensor = fill(body, "begin", 1000)
    for number in range(20):
        tensor = together(body, f"double_{number}", tensor, tensor)
    _used(body, tensor)
    _write(folder, message)


def many_large_tensors(folder: Path) -> None:
    """The same by ten tensors of 400 MB, which are added."""
    message = forge.seed("table_static")
    body = _initialiser(message)
    parts = [fill(body, f"part_{number}", 100_000_000) for number in range(10)]
    node = forge.node_of(body, "sum", "AddN", *parts)
    node.attr["N"].i, node.attr["T"].type = len(parts), schema.DT_INT32
    _used(body, "sum:sum:0")
    _write(folder, message)


def growth_in_loop(folder: Path) -> None:
    """The same by a loop of 20 rounds, each of which puts the vector behind itself; the loop is in
    a called function.
    """
    message = forge.seed("table_static")
    library = message.meta_graphs[0].graph_def.library
    for name in ("grow_cond", "grow_body"):
        made = library.function.add()
        made.signature.name = name
        for argument in ("count", "grown"):
            made.signature.input_arg.add(name=argument, type=schema.DT_INT32)
        if name == "grow_cond":
            made.signature.output_arg.add(name="on", type=schema.DT_BOOL)
            less = forge.node_of(
                made, "less", "Less", "count", forge.numbers(made, "rounds", 20, scalar=True)
            )
            less.attr["T"].type = schema.DT_INT32
            made.ret["on"] = "less:z:0"
            continue
        for argument in ("next", "larger"):
            made.signature.output_arg.add(name=argument, type=schema.DT_INT32)
        next_one = forge.node_of(
            made, "add", "AddV2", "count", forge.numbers(made, "one", 1, scalar=True)
        )
        next_one.attr["T"].type = schema.DT_INT32
        made.ret["next"] = "add:z:0"
        made.ret["larger"] = together(made, "double", "grown", "grown")
    body = _initialiser(message)
    loop = forge.node_of(
        body,
        "loop",
        "StatelessWhile",
        forge.numbers(body, "zero", 0, scalar=True),
        fill(body, "begin", 1000),
    )
    loop.attr["cond"].func.name, loop.attr["body"].func.name = "grow_cond", "grow_body"
    loop.attr["T"].list.type.extend([schema.DT_INT32] * 2)
    unknown = loop.attr["output_shapes"].list
    for _ in range(2):
        unknown.shape.add(unknown_rank=True)
    _used(body, "loop:output:1")
    _write(folder, message)


def fill_by_captured_shape(folder: Path) -> None:
    """The same by a function that is handed the size as an argument through two calls."""
    message = forge.seed("table_static")
    library = message.meta_graphs[0].graph_def.library
    for name, called in (("outer_size", "inner_size"), ("inner_size", None)):
        made = library.function.add()
        made.signature.name = name
        made.signature.input_arg.add(name="size", type=schema.DT_INT32)
        made.signature.output_arg.add(name="made", type=schema.DT_INT32)
        if called is None:
            node = forge.node_of(
                made, "filled", "Fill", "size", forge.numbers(made, "one", 1, scalar=True)
            )
            node.attr["T"].type = node.attr["index_type"].type = schema.DT_INT32
        else:
            node = _call(made, "filled", called, "size")
        made.ret["made"] = "filled:output:0"
    body = _initialiser(message)
    _call(body, "made", "outer_size", forge.numbers(body, "size", GIGA))
    _used(body, "made:output:0")
    _write(folder, message)


def _call(body: Any, name: str, function: str, argument: str) -> Any:
    node = forge.node_of(body, name, "StatefulPartitionedCall", argument)
    forge.call(node, function)
    node.attr["Tin"].list.type.append(schema.DT_INT32)
    node.attr["Tout"].list.type.append(schema.DT_INT32)
    return node


def fill_at_init(folder: Path) -> None:
    """A TF 1 model whose init op makes a thousand million equal numbers."""
    message = forge.model()
    graph = message.meta_graphs[0]
    fill(graph.graph_def, "filled", GIGA)
    forge.node_of(graph.graph_def, "evil", "NoOp", "^filled")
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.constant(graph.graph_def, "x", b"y")
    forge.signature(graph, kind=schema.DT_STRING)
    forge.write(folder, message)
