"""The two functions behind the SaverDef: checkpoint prefix in, values out or in (FMT-06, FMT-08, RES-15, COMPAT-04).

Only ops that TF 1.x has are used: a SaveV2 and a RestoreV2 for everything, reads and assignments, and calls of the functions that
tables bring for their content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.names import OBJECT_GRAPH_KEY
from reference_impl.saving.functions import Library
from reference_impl.saving.graph import MainGraph, set_call


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


class _Body:
    """A FunctionDef in the making. Tensors of the main graph that it needs become arguments."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.function = schema.FunctionDef()
        self.function.signature.is_stateful = True
        self.function.signature.input_arg.add(name="file_prefix", type=schema.DT_STRING)
        self.function.arg_attr[0].attr["_output_shapes"].list.shape.add()
        self.inputs: list[str] = []
        self._arguments: dict[str, str] = {}
        self.effects: list[str] = []

    def argument(self, tensor: str, dtype: int) -> str:
        if tensor not in self._arguments:
            self._arguments[tensor] = f"captured_{len(self.inputs)}"
            self.function.signature.input_arg.add(name=self._arguments[tensor], type=dtype)
            self.inputs.append(tensor)
        return self._arguments[tensor]

    def node(self, name: str, op: str, inputs: Sequence[str] = ()) -> Any:
        return self.function.node_def.add(name=name, op=op, input=inputs)

    def strings(self, name: str, values: Sequence[bytes], scalar: bool = False) -> str:
        node = self.node(name, "Const")
        node.attr["dtype"].type = schema.DT_STRING
        tensor = node.attr["value"].tensor
        tensor.dtype = schema.DT_STRING
        tensor.tensor_shape.SetInParent()
        if not scalar:
            tensor.tensor_shape.dim.add(size=len(values))
        tensor.string_val.extend(values)
        return f"{name}:output:0"

    def call(self, name: str, function: str, inputs: Sequence[str], captured: Sequence[str]) -> str:
        signature = self.library.definitions[function].signature
        types = [argument.type for argument in signature.input_arg][len(inputs) :]
        arguments = [self.argument(tensor, dtype) for tensor, dtype in zip(captured, types)]
        op = "StatefulPartitionedCall" if signature.is_stateful else "PartitionedCall"
        node = self.node(name, op, [*inputs, *arguments])
        set_call(node, function, signature)
        self.effects.append(name)
        return name

    def finish(self, hint: str) -> str:
        """Give the prefix back when everything is done; the function's name."""
        node = self.node("Identity", "Identity", ["file_prefix", *(f"^{name}" for name in self.effects)])
        node.attr["T"].type = schema.DT_STRING
        self.function.signature.output_arg.add(name="identity", type=schema.DT_STRING)
        self.function.ret["identity"] = "Identity:output:0"
        for name in self.effects:
            self.function.signature.control_output.append(name)
            self.function.control_ret[name] = name
        return self.library.write(self.function, hint)


def add_saver(
    graph: MainGraph, library: Library, variables: Sequence[SavedVariable], contents: Sequence[SavedContent], object_graph: bytes
) -> Any:
    """Write both functions and their calls; the SaverDef."""
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
    body = _Body(library)
    keys: list[str] = []
    tensors: list[str] = []
    types: list[int] = []
    for index, variable in enumerate(variables):
        read = body.node(f"Read_{index}", "ReadVariableOp", [body.argument(variable.handles[0], schema.DT_RESOURCE)])
        read.attr["dtype"].type = variable.dtype
        keys.append(variable.key)
        tensors.append(f"{read.name}:value:0")
        types.append(variable.dtype)
    for index, content in enumerate(contents):
        key = content.given_key
        given = [] if key is None else [body.strings(f"content_key_{index}", [key.encode()], scalar=True)]
        call = body.call(f"content_{index}", content.save, given, content.save_inputs)
        keys += content.keys
        tensors += [f"{call}:output:{place}" for place in content.results]
        types += content.dtypes
    keys.append(OBJECT_GRAPH_KEY)
    tensors.append(body.strings("object_graph", [object_graph], scalar=True))
    types.append(schema.DT_STRING)
    names = body.strings("SaveV2/tensor_names", [key.encode() for key in keys])
    slices = body.strings("SaveV2/shape_and_slices", [b""] * len(keys))
    node = body.node("SaveV2", "SaveV2", ["file_prefix", names, slices, *tensors])
    node.attr["dtypes"].list.type.extend(types)
    body.effects.append(node.name)
    return body.finish("_traced_save"), body.inputs


def _restore(library: Library, variables: Sequence[SavedVariable], contents: Sequence[SavedContent]) -> Any:
    body = _Body(library)
    keys = [variable.key for variable in variables] + [key for content in contents for key in content.keys]
    types = [variable.dtype for variable in variables] + [dtype for content in contents for dtype in content.dtypes]
    if not keys:  # RestoreV2 must restore something
        keys, types = [OBJECT_GRAPH_KEY], [schema.DT_STRING]
    names = body.strings("RestoreV2/tensor_names", [key.encode() for key in keys])
    slices = body.strings("RestoreV2/shape_and_slices", [b""] * len(keys))
    node = body.node("RestoreV2", "RestoreV2", ["file_prefix", names, slices])
    node.attr["dtypes"].list.type.extend(types)
    for index, variable in enumerate(variables):
        for replica, tensor in enumerate(variable.handles):
            handle = body.argument(tensor, schema.DT_RESOURCE)
            name = f"Assign_{index}_{replica}" if replica else f"Assign_{index}"
            assign = body.node(name, "AssignVariableOp", [handle, f"RestoreV2:tensors:{index}"])
            assign.attr["dtype"].type = variable.dtype
            body.effects.append(assign.name)
    position = len(variables)
    for index, content in enumerate(contents):
        given = [f"RestoreV2:tensors:{position + i}" for i in range(len(content.keys))]
        position += len(content.keys)
        body.call(f"content_{index}", content.restore, given, content.restore_inputs)
    return body.finish("_traced_restore"), body.inputs
