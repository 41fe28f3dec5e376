"""Build FunctionDefs by hand, and change the arguments, tensors and nodes of existing ones.

Signatures, the saver, the content of tables and the parts of a TF 1.x graph are functions without a
trace. :class:`FunctionBuilder` builds them. The functions below it change a FunctionDef in place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Optional, Union

from reference_impl.format import schema
from reference_impl.graph.argument_names import argument_name
from reference_impl.graph.node_builder import NodeBuilder
from reference_impl.graph.unique_names import UniqueNames

_INPUT_SHAPES = "_input_shapes"
USER_NAME = "_user_specified_name"


class FunctionBuilder(NodeBuilder):
    """A FunctionDef under construction, in the attribute `function`.

    A number is added to names of arguments, nodes and results that are taken; the methods return
    the final names. Arguments and new nodes do not take `reserved` names. Calls of a stateful
    function may not be merged or left out.
    """

    def __init__(self, name: str = "", is_stateful: bool = False, reserved: Iterable[str] = ()):
        self.function = schema.FunctionDef()
        self.function.signature.name = name
        self.function.signature.is_stateful = is_stateful
        super().__init__(UniqueNames(reserved))
        self._results = UniqueNames()

    @classmethod
    def copy_of(cls, function: schema.FunctionDef) -> FunctionBuilder:
        """Return a builder that extends a copy of a FunctionDef."""
        builder = cls()
        builder.function.CopyFrom(function)
        builder._names.reserve(argument.name for argument in function.signature.input_arg)
        builder._names.reserve(node.name for node in function.node_def)
        builder._results.reserve(item.name for item in function.signature.output_arg)
        return builder

    def argument(
        self,
        name: str,
        kind: Union[int, Any],
        *,
        attributes: Optional[schema.FunctionDef.ArgAttrs] = None,
        shape: Optional[schema.TensorShapeProto] = None,
        user_name: Optional[str] = None,
    ) -> str:
        """Add an argument; return its name, which is also the text of its tensor.

        Args:
          kind: its DataType, or an ArgDef of another function to copy.
          attributes: ArgAttrs of another function to copy.
          shape: its TensorShapeProto, if known.
          user_name: the name that callers use.
        """
        position = len(self.function.signature.input_arg)
        added = self._add(self.function.signature.input_arg, name, kind, self._names)
        if attributes is not None:
            self.function.arg_attr[position].CopyFrom(attributes)
        if user_name is not None:
            self.function.arg_attr[position].attr[USER_NAME].s = user_name.encode()
        if shape is not None:
            self.function.arg_attr[position].attr["_output_shapes"].list.shape.add().CopyFrom(shape)
        return added

    def _new_node(self, name: str) -> schema.NodeDef:
        return self.function.node_def.add(name=name)

    def _first_output(self, node: schema.NodeDef) -> str:
        return f"{node.name}:output:0"

    def copy_node(
        self, node: schema.NodeDef, inputs: Iterable[str], without: Collection[str] = ()
    ) -> Any:
        """Add a copy of a NodeDef, whose name must be free or reserved, with other inputs and
        without some attributes.
        """
        copy = self.function.node_def.add()
        copy.CopyFrom(node)
        copy.input[:] = inputs
        for key in without:
            copy.attr.pop(key, None)
        self._names.reserve([copy.name])
        return copy

    def result(self, name: str, tensor: str, kind: Union[int, Any]) -> str:
        """Add a result; return its name. `kind` is its DataType, or an ArgDef to copy."""
        added = self._add(self.function.signature.output_arg, name, kind, self._results)
        self.function.ret[added] = tensor
        return added

    def control_output(self, node: str, name: Optional[str] = None) -> None:
        """Make calls of the function end only after a node has run.

        `name` is the name of the control output.
        """
        key = node if name is None else name
        self.function.control_ret[key] = node
        self.function.signature.control_output.append(key)

    def control_outputs(self, nodes: Iterable[str]) -> None:
        """Make calls of the function end only after these nodes have run."""
        for node in nodes:
            self.control_output(node)

    def _add(self, arguments: Any, name: str, kind: Union[int, Any], names: UniqueNames) -> str:
        added = arguments.add(name=names.take(name))
        if isinstance(kind, int):
            added.type = kind
        else:
            unique = added.name
            added.CopyFrom(kind)
            added.name = unique
        return str(added.name)


def wrap(
    name: str,
    callee: schema.FunctionDef,
    inputs: Sequence[Union[str, schema.TensorProto]],
    results: Sequence[tuple[str, int]],
) -> Any:
    """Return a FunctionDef that calls another one and returns some of its results.

    The call is always stateful. Files of older writers do not mark every function that has state,
    and a stateless call may be folded away or run twice.

    Args:
      inputs: for each argument of the callee the name of an argument of the new function, or a
        constant.
      results: name and number of the callee's result, in the order of the new function's results.
    """
    builder = FunctionBuilder(name, is_stateful=True)
    texts = []
    for index, given in enumerate(inputs):
        if isinstance(given, str):
            wanted, attributes = argument_name(given), callee.arg_attr.get(index)
            kind = callee.signature.input_arg[index]
            texts.append(builder.argument(wanted, kind, attributes=attributes, user_name=given))
        else:
            texts.append(builder.constant(f"constant_{index}", given))
    call = builder.call("call", callee.signature.name, callee.signature, texts, is_stateful=True)
    for key in ("Tin", "Tout"):
        call.attr[key].list.SetInParent()
    for label, index in results:
        builder.result(
            argument_name(label), f"{call.name}:output:{index}", callee.signature.output_arg[index]
        )
    builder.control_output(call.name)
    return builder.function


def with_shapes(
    name: str, callee: str, signature: schema.OpDef, shapes: Sequence[Optional[Any]]
) -> Any:
    """Return a FunctionDef that calls a function and declares the shapes of its arguments.

    Args:
      name: of the new function.
      callee: the name of the function to call.
      signature: its OpDef.
      shapes: a TensorShapeProto for each argument, None if it is not known.
    """
    stateful = signature.is_stateful or bool(signature.control_output)
    builder = FunctionBuilder(name, is_stateful=stateful)
    arguments = [
        builder.argument(item.name, item, shape=shape)
        for item, shape in zip(signature.input_arg, shapes)
    ]
    call = builder.call(None, callee, signature, arguments, is_stateful=stateful)
    for position, item in enumerate(signature.output_arg):
        builder.result(item.name, f"{call.name}:output:{position}", item)
    builder.control_output(call.name)
    return builder.function


def select_arguments(function: schema.FunctionDef, positions: Sequence[int]) -> None:
    """Keep the arguments at some positions of a FunctionDef, in this order, together with their
    attributes, in place.
    """
    before = schema.copy_of(function)
    del function.signature.input_arg[:]
    function.signature.input_arg.extend(
        before.signature.input_arg[position] for position in positions
    )
    function.ClearField("arg_attr")
    function.ClearField("resource_arg_unique_id")
    for new, old in enumerate(positions):
        if old in before.arg_attr:
            function.arg_attr[new].CopyFrom(before.arg_attr[old])
        if old in before.resource_arg_unique_id:
            function.resource_arg_unique_id[new] = before.resource_arg_unique_id[old]
    if _INPUT_SHAPES in function.attr:
        shapes = before.attr[_INPUT_SHAPES].list.shape
        del function.attr[_INPUT_SHAPES].list.shape[:]
        function.attr[_INPUT_SHAPES].list.shape.extend(
            shapes[position] for position in positions if position < len(shapes)
        )


def replace_tensors(function: schema.FunctionDef, change: Callable[[str], str]) -> None:
    """Change every input of a node and every result of a FunctionDef, in place.

    `change` takes and returns their texts.
    """
    for node in function.node_def:
        changed = [change(text) for text in node.input]
        if changed != node.input:
            node.input[:] = changed
    for key, text in list(function.ret.items()):
        function.ret[key] = change(text)


def remove_nodes(function: schema.FunctionDef, names: Collection[str]) -> None:
    """Remove nodes whose results are not used, with the control edges and control outputs that name
    them.
    """
    for index in reversed(range(len(function.node_def))):
        node = function.node_def[index]
        if node.name in names:
            del function.node_def[index]
        elif any(text[:1] == "^" and text[1:] in names for text in node.input):
            node.input[:] = [
                text for text in node.input if text[:1] != "^" or text[1:] not in names
            ]
    gone = {key for key, name in function.control_ret.items() if name in names}
    for key in gone:
        del function.control_ret[key]
    function.signature.control_output[:] = [
        key for key in function.signature.control_output if key not in gone
    ]
