"""A FunctionDef whose nodes can be replaced, for passes that convert TF 1.x control flow to
functions.

A pass that replaces a node names the replacements of its tensors. Inputs are read through
:meth:`EditableFunction.resolve`, so users of a tensor need not be searched and every pass stays
linear.

RFC: V1-11
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.graph.node_attributes import argument_shape
from reference_impl.graph.node_builder import NodeBuilder
from reference_impl.graph.node_defs import int_tensor, scalar_tensor
from reference_impl.graph.op_table import VARIABLE_READS, OpTable
from reference_impl.graph.order import sources_first
from reference_impl.graph.unique_names import UniqueNames


class NotConvertible(Exception):
    """The graph was not provably made by tf.while_loop, tf.cond and tf.TensorArray, so it is not
    changed.
    """

    def __init__(self, node: str, reason: str):
        super().__init__(f"node {node!r} {reason}")
        self.node = node


class Tensor(NamedTuple):
    """A tensor that is passed into or out of a function: its text, its DataType, and its
    TensorShapeProto if known.
    """

    text: str
    dtype: int
    shape: Any = None


class EditableFunction(NodeBuilder):
    """The nodes of a FunctionDef by name, and its arguments (name -> DataType). :meth:`store`
    writes the result back.
    """

    def __init__(self, definition: schema.FunctionDef, ops: OpTable):
        self.definition = definition
        self.ops = ops
        self.arguments = {
            argument.name: argument.type for argument in definition.signature.input_arg
        }
        self.nodes: dict[str, Any] = {}
        for node in definition.node_def:
            copy = schema.copy_of(node)
            self.nodes[node.name] = copy
        self._replaced: dict[
            str, str
        ] = {}  # text of a tensor or a control edge -> text of its replacement
        self._outputs: dict[
            str, dict[str, tuple[int, int]]
        ] = {}  # node -> {port: (position, DataType)}
        self._positions = {name: index for index, name in enumerate(self.arguments)}
        # A name stays taken when its node is removed, because edges may still refer to the old
        # node.
        super().__init__(UniqueNames([*self.arguments, *self.nodes]))

    def replace(self, text: str, by: str) -> None:
        """Replace a tensor by another one, or a control edge (``^node``) by another one."""
        self._replaced[text] = by

    def changed(self, node: str) -> None:
        """Forget the recorded outputs of ``node``."""
        self._outputs.pop(node, None)

    def resolve(self, text: str) -> str:
        """Return the text of a tensor, or of a control edge, after all replacements."""
        found = text
        while found in self._replaced:
            found = self._replaced[found]
        if found != text:
            self._replaced[text] = found  # shortens the path for the next look-up
        return found

    def data(self, node: schema.NodeDef, count: int = -1) -> list[str]:
        """Return the input tensors of a node.

        Raises NotConvertible if their number is not ``count``.
        """
        found = [self.resolve(text) for text in node.input if text[:1] != "^"]
        if count not in (-1, len(found)):
            raise NotConvertible(node.name, f"has {len(found)} data inputs, not {count}")
        return found

    def controls(self, node: schema.NodeDef) -> list[str]:
        """Return the names of the nodes that a node waits for by control edges, each once."""
        return list(dict.fromkeys(self.resolve(text)[1:] for text in node.input if text[:1] == "^"))

    def sources(self, node: schema.NodeDef) -> list[str]:
        """Return the names of all nodes that a node needs; arguments are left out."""
        found = [*(source(text) for text in self.data(node)), *self.controls(node)]
        return [name for name in found if name in self.nodes]

    def dtype(self, text: str) -> int:
        """Return the DataType of a tensor. Raises MalformedError if there is no such tensor."""
        name = source(text)
        return (
            self.arguments[name]
            if name in self.arguments and text == name
            else self._output(text)[1]
        )

    def _output(self, text: str) -> tuple[int, int]:
        name = source(text)
        if name in self.nodes:
            if name not in self._outputs:
                outputs = enumerate(self.ops.outputs(self.nodes[name]))
                self._outputs[name] = {
                    f"{port}:{index}": (place, kind % 100) for place, (port, index, kind) in outputs
                }
            outputs_of = self._outputs[name]
            if text[len(name) + 1 :] in outputs_of:
                return outputs_of[text[len(name) + 1 :]]
        raise errors.MalformedError(
            f"there is no tensor {text!r}", file=self.ops.file, node=self.definition.signature.name
        )

    def shape(self, text: str) -> Optional[Any]:
        """Return the TensorShapeProto that the exporter recorded for a tensor, or None."""
        if text in self.arguments:
            return argument_shape(self.definition, self._positions[text])
        place, attrs = self._output(text)[0], self.nodes[source(text)].attr
        for key in ("_output_shapes", "output_shapes"):
            if key in attrs and place < len(attrs[key].list.shape):
                return attrs[key].list.shape[place]
        return None

    def tensor(self, text: str) -> Tensor:
        """Describe a tensor that is passed into or out of a function."""
        return Tensor(text, self.dtype(text), self.shape(text))

    def is_stateful(self, names: Iterable[str]) -> bool:
        return any(self.ops.is_stateful(self.nodes[name]) for name in names)

    def _new_node(self, name: str) -> schema.NodeDef:
        self.nodes[name] = schema.NodeDef(name=name)
        return self.nodes[name]

    def _first_output(self, node: schema.NodeDef) -> str:
        return f"{node.name}:output:0"

    def node(
        self, name: str, op: str, inputs: Iterable[str] = (), controls: Iterable[str] = ()
    ) -> schema.NodeDef:
        """Add a node as every builder does. Arguments in `controls` are left out."""
        waits = [control for control in dict.fromkeys(controls) if control not in self.arguments]
        return super().node(name, op, inputs, waits)

    def identity_text(
        self, name: str, tensor: str, dtype: int, controls: Iterable[str] = ()
    ) -> str:
        """Add an Identity of a tensor; return the text of its tensor."""
        return self._first_output(self.identity(name, tensor, dtype, controls))

    def add_zeros(self, name: str, tensor: Tensor) -> tuple[str, list[str]]:
        """Add zeros with the dtype and the known part of the shape of a tensor; return their text
        and the nodes made for them.

        Raises NotConvertible: the shape, which the file notes, would take gigabytes.
        """
        known = tensor.shape is not None and not tensor.shape.unknown_rank
        sizes = [max(dim.size, 0) for dim in tensor.shape.dim] if known else []
        if max([*sizes, math.prod(sizes)]) > limits.ZEROS:
            raise NotConvertible(
                source(tensor.text),
                f"notes the shape {sizes}, too large for zeros in the other branch",
            )
        inputs = [
            self.constant(f"{name}/Sizes", int_tensor(sizes)),
            self.constant(f"{name}/Zero", scalar_tensor(tensor.dtype)),
        ]
        filled = self.node(f"{name}/Nothing", "Fill", inputs)
        filled.attr["T"].type, filled.attr["index_type"].type = tensor.dtype, schema.DT_INT32
        return f"{filled.name}:output:0", [*map(source, inputs), str(filled.name)]

    def results(self) -> list[str]:
        """Return the nodes whose tensors or completion the function returns to its callers."""
        found = [source(self.resolve(text)) for text in self.definition.ret.values()]
        found += [self.resolve("^" + name)[1:] for name in self.definition.control_ret.values()]
        return [name for name in found if name in self.nodes]

    def extract(
        self,
        name: str,
        nodes: Sequence[str],
        arguments: Mapping[str, Tensor],
        results: Sequence[Tensor],
        moved: Mapping[str, str],
    ) -> Any:
        """Return a new FunctionDef with copies of some nodes, which returns some tensors of this
        function.

        Of the tensors that the `arguments` represent, by name, only dtype and shape matter. `moved`
        maps tensors of this function to tensors of the new one.
        """
        builder = FunctionBuilder(name, self.is_stateful(nodes))
        for argument, tensor in arguments.items():
            builder.argument(argument, tensor.dtype, shape=tensor.shape)
        inside = set(nodes)
        for node in (self.nodes[node_name] for node_name in nodes):
            controls = ["^" + control for control in self.controls(node) if control in inside]
            builder.copy_node(node, [moved.get(text, text) for text in self.data(node)] + controls)
        for index, tensor in enumerate(results):
            text = self.resolve(tensor.text)
            builder.result(f"result_{index}", moved.get(text, text), tensor.dtype)
        # TensorFlow drops unused results together with the nodes they wait for, but a call must end
        # after its effects.
        effects = [
            name
            for name in nodes
            if self.nodes[name].op not in VARIABLE_READS and self.is_stateful([name])
        ]
        for index, effect in enumerate(effects):
            builder.control_output(effect, f"effect_{index}")
        return builder.function

    def remove(self, names: Iterable[str]) -> None:
        """Remove nodes."""
        for name in names:
            del self.nodes[name]

    def store(self) -> None:
        """Write everything back into the FunctionDef."""
        definition = self.definition
        for node in self.nodes.values():
            node.input[:] = self.data(node) + [
                "^" + name for name in self.controls(node) if name in self.nodes
            ]
        for key, text in list(definition.ret.items()):
            definition.ret[key] = self.resolve(text)
        for key, name in list(definition.control_ret.items()):
            definition.control_ret[key] = self.resolve("^" + name)[1:]
        del definition.node_def[:]
        definition.node_def.extend(self.nodes.values())


def source(text: str) -> str:
    """Return the node or argument that a tensor of a function comes from."""
    return text.partition(":")[0]


def static_shapes(attr: schema.AttrValue, tensors: Iterable[Tensor]) -> None:
    """Fill a list(shape) attribute with the shapes of tensors. Handles are scalars."""
    attr.list.SetInParent()
    for tensor in tensors:
        shape = attr.list.shape.add()
        if tensor.shape is not None:
            shape.CopyFrom(tensor.shape)
        elif tensor.dtype not in (schema.DT_RESOURCE, schema.DT_VARIANT):
            shape.unknown_rank = True


def order(function: EditableFunction) -> Optional[list[str]]:
    """Return the names of the nodes, each after the nodes it needs, or None if there is a cycle."""
    return sources_first({name: function.sources(node) for name, node in function.nodes.items()})
