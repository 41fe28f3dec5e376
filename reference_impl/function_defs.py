"""FunctionDefs made by hand: a function around another one, with other arguments and results.

Signatures and the content of tables are exported as functions whose results have names; what they stand for is in most
cases a function that exists, whose results have positions. A FunctionDef of two nodes closes the gap without any tracing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Union

from reference_impl.format import schema


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
    taken: set[str] = set()
    for index, given in enumerate(inputs):
        source = callee.signature.input_arg[index]
        if isinstance(given, Constant):
            node = function.node_def.add(name=f"constant_{index}", op="Const")
            node.attr["dtype"].type = source.type
            node.attr["value"].tensor.CopyFrom(given.value)
            call.input.append(f"constant_{index}:output:0")
            continue
        argument = function.signature.input_arg.add(name=argument_name(given.name, taken), type=given.dtype)
        argument.handle_data.extend(source.handle_data)
        position = len(function.signature.input_arg) - 1
        if index in callee.arg_attr:
            function.arg_attr[position].CopyFrom(callee.arg_attr[index])
        function.arg_attr[position].attr["_user_specified_name"].s = given.name.encode()
        call.input.append(argument.name)
    function.node_def.append(call)
    taken = set()
    for label, index in results:
        output = function.signature.output_arg.add(name=argument_name(label, taken), type=callee.signature.output_arg[index].type)
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


def reorder(function: Any, order: Sequence[int]) -> Any:
    """The function with its first arguments in another order: `order` gives their present positions."""
    copy = schema.FunctionDef()
    copy.CopyFrom(function)
    for position, source in enumerate(order):
        copy.signature.input_arg[position].CopyFrom(function.signature.input_arg[source])
        copy.arg_attr[position].CopyFrom(function.arg_attr[source])
    return copy


def argument_name(text: str, taken: Collection[str]) -> str:
    """``text`` as an OpDef argument name (``[a-z][a-z0-9_]*``), different from all in ``taken``.

    It is added to ``taken`` if that is a set.
    """
    name = re.sub(r"[^a-z0-9_]", "_", text.lower())
    if not name[:1].isalpha():
        name = "arg_" + name.lstrip("_")
    unique, count = name, 0
    while unique in taken or unique == "call":
        count += 1
        unique = f"{name}_{count}"
    if isinstance(taken, set):
        taken.add(unique)
    return unique
