"""Write the two functions behind the SaverDef: one saves to a checkpoint prefix, the other restores
from it.

Both use only ops of TF 1.x: one SaveV2, one RestoreV2, reads and assignments, and calls of the
functions that save and restore the contents of tables.

RFC: FMT-06, FMT-08, RES-15, COMPAT-04
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.format.names import OBJECT_GRAPH_KEY, VALUE
from reference_impl.functions import specs
from reference_impl.functions.names import ExportName
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.graph.node_defs import string_tensor
from reference_impl.saving.collect import Functions
from reference_impl.saving.contents import Content
from reference_impl.saving.freeze import Frozen
from reference_impl.saving.graph import MainGraph


class _SaverFunction(FunctionBuilder):
    """A function that takes a checkpoint prefix and returns it when all work is done."""

    def __init__(self, graph: MainGraph, functions: Functions) -> None:
        super().__init__(is_stateful=True)
        self._graph, self._functions = graph, functions
        self.prefix = self.argument(
            "file_prefix", schema.DT_STRING, shape=schema.TensorShapeProto()
        )
        self.inputs: list[
            str
        ] = []  # the tensors of the main graph that the function takes after the prefix
        self.effects: list[str] = []  # the nodes that the result waits for
        self._arguments: dict[str, str] = {}

    def captured(self, tensor: str, dtype: int) -> str:
        """Return the argument for a tensor of the main graph."""
        if tensor not in self._arguments:
            self._arguments[tensor] = self.argument(f"captured_{len(self.inputs)}", dtype)
            self.inputs.append(tensor)
        return self._arguments[tensor]

    def handles(self, number: int) -> Iterator[str]:
        """Yield the arguments for the handles of a variable."""
        return (self.captured(handle, schema.DT_RESOURCE) for handle in self._graph.handles[number])

    def call_bound(self, name: str, number: int, inputs: Sequence[str]) -> str:
        """Add a call of the function of a node, with its captures; return the name of the call's
        node.
        """
        function, captures = self._functions.captures(number)
        signature = self._functions.library.definitions[function].signature
        types = [argument.type for argument in signature.input_arg][len(inputs) :]
        arguments = [
            self.captured(self._graph.tensor(capture), dtype)
            for capture, dtype in zip(captures, types)
        ]
        node = self.call(name, function, signature, [*inputs, *arguments])
        self.effects.append(node.name)
        return str(node.name)

    def checkpoint_op(
        self, op: str, keys: Sequence[str], types: Sequence[int], tensors: Sequence[str] = ()
    ) -> str:
        """Add a SaveV2 or RestoreV2 of whole tensors; return the name of its node."""
        names = self.constant(f"{op}/tensor_names", string_tensor([key.encode() for key in keys]))
        slices = self.constant(f"{op}/shape_and_slices", string_tensor([b""] * len(keys)))
        node = self.node(op, op, [self.prefix, names, slices, *tensors])
        node.attr["dtypes"].list.type.extend(types)
        return str(node.name)

    def finish(self, hint: str) -> ExportName:
        """Write the function into the library and return its name."""
        node = self.identity("Identity", self.prefix, schema.DT_STRING, self.effects)
        self.result("identity", f"{node.name}:output:0", schema.DT_STRING)
        for name in self.effects:
            self.control_output(name)
        return self._functions.library.write(self.function, hint)


def add_saver(graph: MainGraph, frozen: Frozen) -> Any:
    """Write both functions, and the nodes of the main graph that call them; return the SaverDef."""
    prefix = graph.add_string("saver_filename", "Placeholder")
    keys, types = _saved_tensors(frozen)
    functions = frozen.collected.functions
    written = []
    for add_body, name in ((_add_save, "_traced_save"), (_add_restore, "_traced_restore")):
        builder = _SaverFunction(graph, functions)
        add_body(builder, frozen, keys, types)
        written.append((builder.finish(name), builder.inputs))
    saved, restored = (
        graph.call_function(function, [prefix.name, *inputs]) for function, inputs in written
    )
    out = schema.SaverDef(version=schema.SaverDef.V2)
    out.filename_tensor_name = f"{prefix.name}:0"
    out.save_tensor_name = f"{saved.name}:0"
    out.restore_op_name = restored.name
    return out


def _contents(frozen: Frozen, with_functions: bool = True) -> list[tuple[int, Content]]:
    """Return the contents that functions save and restore, or the others, each with the number of
    its object.
    """
    found: list[tuple[int, Content]] = []
    for number, items in frozen.collected.contents.items():
        found += [
            (number, content) for content in items if (content.save is not None) == with_functions
        ]
    return found


def _saved_tensors(frozen: Frozen) -> tuple[list[str], list[int]]:
    """Return the checkpoint key and the DataType of each tensor: first of variables, then of the
    contents of tables.
    """
    keys = [frozen.keys.key(number, VALUE) for number in frozen.variables]
    variables = [
        api.variable_components(frozen.tree.nodes[number].object)[0] for number in frozen.variables
    ]
    types = [variable.dtype.as_datatype_enum for variable in variables]
    functions = frozen.collected.functions
    for number, content in _contents(frozen):
        keys += [frozen.keys.key(number, part) for part in content.parts]
        results = functions.library.definitions[
            functions.names[frozen.tree.number(content.save)]
        ].signature.output_arg
        types += [results[place].type for place in content.results]
    return keys, types


def _add_save(
    builder: _SaverFunction, frozen: Frozen, keys: Sequence[str], types: Sequence[int]
) -> None:
    tensors = []
    for index, number in enumerate(frozen.variables):
        read = builder.node(f"Read_{index}", "ReadVariableOp", [next(builder.handles(number))])
        read.attr["dtype"].type = types[index]
        tensors.append(f"{read.name}:value:0")
    for index, (number, content) in enumerate(_contents(frozen)):
        key = string_tensor(frozen.keys.key(number, content.name).encode())
        given = [builder.constant(f"content_key_{index}", key)] if content.takes_key else []
        call = builder.call_bound(f"content_{index}", frozen.tree.number(content.save), given)
        tensors += [f"{call}:output:{place}" for place in content.results]
    keys, types = [*keys], [*types]
    for number, content in _contents(
        frozen, with_functions=False
    ):  # as it is now: only the class of the object knows more
        for part, value in zip(content.parts, content.values):
            keys.append(frozen.keys.key(number, part))
            types.append(value.dtype.as_datatype_enum)
            tensors.append(
                builder.constant(
                    f"kept_{len(tensors)}",
                    schema.parse(schema.TensorProto, specs.tensor_bytes(value)),
                )
            )
    tensors.append(builder.constant("object_graph", string_tensor(frozen.object_graph)))
    builder.effects.append(
        builder.checkpoint_op(
            "SaveV2", [*keys, OBJECT_GRAPH_KEY], [*types, schema.DT_STRING], tensors
        )
    )


def _add_restore(
    builder: _SaverFunction, frozen: Frozen, keys: Sequence[str], types: Sequence[int]
) -> None:
    node = builder.checkpoint_op(
        "RestoreV2", keys or [OBJECT_GRAPH_KEY], types or [schema.DT_STRING]
    )  # it takes no empty list
    restored = [f"{node}:tensors:{position}" for position in range(len(keys))]
    for index, number in enumerate(frozen.variables):
        for replica, handle in enumerate(builder.handles(number)):
            name = f"Assign_{index}_{replica}" if replica else f"Assign_{index}"
            assign = builder.node(name, "AssignVariableOp", [handle, restored[index]])
            assign.attr["dtype"].type = types[index]
            builder.effects.append(assign.name)
    position = len(frozen.variables)
    for index, (_, content) in enumerate(_contents(frozen)):
        given = restored[position : position + len(content.parts)]
        position += len(given)
        builder.call_bound(f"content_{index}", frozen.tree.number(content.restore), given)
