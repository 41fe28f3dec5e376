"""FunctionDefs made by hand: a function around another one, with other arguments and results.

Signatures and the content of tables are exported as functions whose results have names; what they stand for is in most
cases a function that exists, whose results have positions. A FunctionDef of two nodes closes the gap without any tracing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

from reference_impl.format import schema
from reference_impl.graph.argument_names import argument_name
from reference_impl.graph.edges import input_source


class Argument(NamedTuple):
    """An argument of the new function, handed on to the callee as its next input."""

    name: str
    dtype: int


class Constant(NamedTuple):
    """An input of the callee that has one value (a TensorProto)."""

    value: Any


def around(name: str, callee: Any, inputs: Sequence[Union[Argument, Constant]], results: Sequence[tuple[str, int]]) -> Any:
    """A FunctionDef that calls another one and gives some of its results.

    Args:
      name: of the new function.
      callee: FunctionDef to be called.
      inputs: one per argument of the callee, in its order.
      results: name and number of the callee's result, in the order of the new function's results.

    Returns:
      A FunctionDef. Names that an OpDef may not have are changed, see `argument_name`.
    """
    function = schema.FunctionDef()
    function.signature.name = name
    function.signature.is_stateful = True
    call = call_node("call", callee, [])
    taken = {"call"}
    for index, given in enumerate(inputs):
        source = callee.signature.input_arg[index]
        if isinstance(given, Constant):
            node = function.node_def.add(name=f"constant_{index}", op="Const")
            node.attr["dtype"].type = source.type
            node.attr["value"].tensor.CopyFrom(given.value)
            call.input.append(f"constant_{index}:output:0")
            continue
        argument = function.signature.input_arg.add(name=argument_name(given.name, taken), type=given.dtype)
        taken.add(argument.name)
        argument.handle_data.extend(source.handle_data)
        position = len(function.signature.input_arg) - 1
        if index in callee.arg_attr:
            function.arg_attr[position].CopyFrom(callee.arg_attr[index])
        function.arg_attr[position].attr["_user_specified_name"].s = given.name.encode()
        call.input.append(argument.name)
    function.node_def.append(call)
    taken = {"call"}
    for label, index in results:
        output = function.signature.output_arg.add(name=argument_name(label, taken), type=callee.signature.output_arg[index].type)
        taken.add(output.name)
        output.handle_data.extend(callee.signature.output_arg[index].handle_data)
        function.ret[output.name] = f"call:output:{index}"
    function.signature.control_output.append("call")
    function.control_ret["call"] = "call"
    return function


def call_node(name: str, callee: Any, inputs: Sequence[str]) -> Any:
    """A NodeDef that calls a function.

    Always a stateful call: files of older writers do not say of all functions that they have state, and a stateless call may be
    folded away or run twice.
    """
    call = schema.NodeDef(name=name, op="StatefulPartitionedCall")
    call.input.extend(inputs)
    call.attr["f"].func.name = callee.signature.name
    for key, arguments in (("Tin", callee.signature.input_arg), ("Tout", callee.signature.output_arg)):
        call.attr[key].list.SetInParent()
        call.attr[key].list.type.extend(argument.type for argument in arguments)
    return call


def reorder(function: Any, order: Sequence[int], results: Sequence[int] = ()) -> Any:
    """The function with its first arguments, and results, in another order, each given by its present position."""
    copy = schema.FunctionDef()
    copy.CopyFrom(function)
    shapes = function.attr["_input_shapes"].list.shape if "_input_shapes" in function.attr else ()
    shared: dict[int, int] = {}
    for position, source in enumerate(order):
        copy.signature.input_arg[position].CopyFrom(function.signature.input_arg[source])
        if source in function.arg_attr:
            copy.arg_attr[position].CopyFrom(function.arg_attr[source])
        elif position in copy.arg_attr:
            del copy.arg_attr[position]
        if source in function.resource_arg_unique_id:
            shared[position] = function.resource_arg_unique_id[source]
        if position in copy.resource_arg_unique_id:
            del copy.resource_arg_unique_id[position]
        if len(shapes) == len(function.signature.input_arg):
            copy.attr["_input_shapes"].list.shape[position].CopyFrom(shapes[source])
    copy.resource_arg_unique_id.update(shared)
    for position, source in enumerate(results):
        copy.signature.output_arg[position].CopyFrom(function.signature.output_arg[source])
    return copy


def rename_arguments(function: Any, names: Mapping[int, str]) -> None:
    """Give some arguments of a function, by position, other names; inside of it as near to them as an OpDef can have."""
    arguments = function.signature.input_arg
    taken = {node.name for node in function.node_def} | {item.name for n, item in enumerate(arguments) if n not in names}
    new: dict[str, str] = {}
    for position, name in names.items():
        if position in function.arg_attr and "_user_specified_name" in function.arg_attr[position].attr:
            function.arg_attr[position].attr["_user_specified_name"].s = name.encode()
        new[arguments[position].name] = argument_name(name, taken)
        taken.add(new[arguments[position].name])
    for position in names:
        arguments[position].name = new[arguments[position].name]
    colocated = {old.encode(): name.encode() for old, name in new.items()}
    for node in function.node_def:
        for number, text in enumerate(node.input):
            node.input[number] = _renamed(text, new)
        places = node.attr["_class"].list.s if "_class" in node.attr else []
        for number, place in enumerate(places):
            prefix, at, name = place.partition(b"@")
            places[number] = prefix + at + colocated.get(name, name)
    for key, text in function.ret.items():
        function.ret[key] = _renamed(text, new)


def _renamed(text: str, new: Mapping[str, str]) -> str:
    mark = "^" if text.startswith("^") else ""
    source = input_source(text, in_function=True)
    return f"{mark}{new[source]}{text[len(mark) + len(source) :]}" if source in new else text
