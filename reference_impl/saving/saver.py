"""Write the two functions behind the SaverDef: one saves to a checkpoint prefix, the other restores from it.

Both use only ops that TF 1.x has: one SaveV2 and one RestoreV2 for everything, reads and assignments, and calls of the functions
that tables bring for their content.

RFC: FMT-06, FMT-08, RES-15, COMPAT-04
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.names import OBJECT_GRAPH_KEY
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.graph.node_defs import string_tensor
from reference_impl.kinds.export_library import Library
from reference_impl.saving.graph import MainGraph


@dataclass
class SavedVariable:
    """A variable: its checkpoint key, its handles in the main graph (one for each replica), its DataType."""

    key: str
    handles: list[str]
    dtype: int


@dataclass
class SavedContent:
    """The content of a table.

    Attributes:
      keys, dtypes: of its tensors.
      save, restore: names of functions; `save` gives the tensors at the places `results`.
      save_inputs, restore_inputs: tensors of the main graph that these capture.
      given_key: the checkpoint key that the save function takes, None when it takes none.
    """

    keys: list[str]
    dtypes: list[int]
    save: str
    restore: str
    save_inputs: list[str]
    restore_inputs: list[str]
    results: list[int]
    given_key: Optional[str]


class _SaverFunction(FunctionBuilder):
    """A function from a checkpoint prefix to the same prefix, which it gives back when everything is done.

    Args:
      library: of the export.

    Attributes:
      inputs: the tensors of the main graph that the function takes after the prefix.
      effects: names of the nodes that the result waits for.
    """

    def __init__(self, library: Library) -> None:
        super().__init__(is_stateful=True)
        self.library = library
        self.prefix = self.argument("file_prefix", schema.DT_STRING, shape=schema.TensorShapeProto())
        self.inputs: list[str] = []
        self.effects: list[str] = []
        self._arguments: dict[str, str] = {}

    def captured(self, tensor: str, dtype: int) -> str:
        """Return the argument that stands for a tensor of the main graph."""
        if tensor not in self._arguments:
            self._arguments[tensor] = self.argument(f"captured_{len(self.inputs)}", dtype)
            self.inputs.append(tensor)
        return self._arguments[tensor]

    def call_with(self, name: str, function: str, inputs: Sequence[str], captured: Sequence[str]) -> str:
        """Add a call of a function with tensors of this function, then of the main graph; return the name of its node."""
        signature = self.library.definitions[function].signature
        types = [argument.type for argument in signature.input_arg][len(inputs) :]
        arguments = [self.captured(tensor, dtype) for tensor, dtype in zip(captured, types)]
        node = self.call(name, function, signature, [*inputs, *arguments])
        self.effects.append(node.name)
        return str(node.name)

    def checkpoint_op(self, op: str, keys: Sequence[str], types: Sequence[int], tensors: Sequence[str] = ()) -> str:
        """Add a SaveV2 or RestoreV2 of whole tensors; return the name of its node."""
        names = self.constant(f"{op}/tensor_names", string_tensor([key.encode() for key in keys]))
        slices = self.constant(f"{op}/shape_and_slices", string_tensor([b""] * len(keys)))
        node = self.node(op, op, [self.prefix, names, slices, *tensors])
        node.attr["dtypes"].list.type.extend(types)
        return str(node.name)

    def finish(self, hint: str) -> str:
        """Write the function into the library and return its name."""
        node = self.identity("Identity", self.prefix, schema.DT_STRING, self.effects)
        self.result("identity", f"{node.name}:output:0", schema.DT_STRING)
        for name in self.effects:
            self.control_output(name)
        return self.library.write(self.function, hint)


def add_saver(
    graph: MainGraph, library: Library, variables: Sequence[SavedVariable], contents: Sequence[SavedContent], object_graph: bytes
) -> Any:
    """Write both functions and the nodes that call them, and return the SaverDef.

    Args:
      graph: the main graph.
      library: its functions.
      variables, contents: what is saved and restored.
      object_graph: the TrackableObjectGraph of the checkpoint, serialized.
    """
    prefix = graph.add("saver_filename", "Placeholder")
    prefix.attr["dtype"].type = schema.DT_STRING
    prefix.attr["shape"].shape.SetInParent()
    save, save_inputs = _save(library, variables, contents, object_graph)
    restore, restore_inputs = _restore(library, variables, contents)
    saved = graph.call(save, [prefix.name, *save_inputs])
    restored = graph.call(restore, [prefix.name, *restore_inputs])
    out = schema.SaverDef(version=schema.SaverDef.V2)
    out.filename_tensor_name = f"{prefix.name}:0"
    out.save_tensor_name = f"{saved.name}:0"
    out.restore_op_name = restored.name
    return out


def _save(library: Library, variables: Sequence[SavedVariable], contents: Sequence[SavedContent], object_graph: bytes) -> Any:
    builder = _SaverFunction(library)
    keys: list[str] = []
    tensors: list[str] = []
    types: list[int] = []
    for index, variable in enumerate(variables):
        read = builder.node(f"Read_{index}", "ReadVariableOp", [builder.captured(variable.handles[0], schema.DT_RESOURCE)])
        read.attr["dtype"].type = variable.dtype
        keys.append(variable.key)
        tensors.append(f"{read.name}:value:0")
        types.append(variable.dtype)
    for index, content in enumerate(contents):
        key = content.given_key
        given = [] if key is None else [builder.constant(f"content_key_{index}", string_tensor(key.encode()))]
        call = builder.call_with(f"content_{index}", content.save, given, content.save_inputs)
        keys += content.keys
        tensors += [f"{call}:output:{place}" for place in content.results]
        types += content.dtypes
    keys.append(OBJECT_GRAPH_KEY)
    tensors.append(builder.constant("object_graph", string_tensor(object_graph)))
    types.append(schema.DT_STRING)
    builder.effects.append(builder.checkpoint_op("SaveV2", keys, types, tensors))
    return builder.finish("_traced_save"), builder.inputs


def _restore(library: Library, variables: Sequence[SavedVariable], contents: Sequence[SavedContent]) -> Any:
    builder = _SaverFunction(library)
    keys = [variable.key for variable in variables] + [key for content in contents for key in content.keys]
    types = [variable.dtype for variable in variables] + [dtype for content in contents for dtype in content.dtypes]
    if not keys:  # RestoreV2 must restore something
        keys, types = [OBJECT_GRAPH_KEY], [schema.DT_STRING]
    restored = builder.checkpoint_op("RestoreV2", keys, types)
    for index, variable in enumerate(variables):
        for replica, tensor in enumerate(variable.handles):
            handle = builder.captured(tensor, schema.DT_RESOURCE)
            name = f"Assign_{index}_{replica}" if replica else f"Assign_{index}"
            assign = builder.node(name, "AssignVariableOp", [handle, f"{restored}:tensors:{index}"])
            assign.attr["dtype"].type = variable.dtype
            builder.effects.append(assign.name)
    position = len(variables)
    for index, content in enumerate(contents):
        given = [f"{restored}:tensors:{position + i}" for i in range(len(content.keys))]
        position += len(content.keys)
        builder.call_with(f"content_{index}", content.restore, given, content.restore_inputs)
    return builder.finish("_traced_restore"), builder.inputs
