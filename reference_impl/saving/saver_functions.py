"""The two functions behind the SaverDef: one saves to a checkpoint prefix, the other restores from
it.

Both use only ops of TF 1.x: one SaveV2, one RestoreV2, reads and assignments, and calls of the
functions that save and restore the contents of tables.

RFC: FMT-06, FMT-08, RES-15, COMPAT-04
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reference_impl.format import schema
from reference_impl.format.names import OBJECT_GRAPH_KEY
from reference_impl.functions import specs
from reference_impl.functions.names import ExportName
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.saving.checkpoint_layout import CheckpointLayout
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.exported_functions import Capture, ExportedFunction
from reference_impl.saving.saveable_state import SaveableState
from reference_impl.saving.tree import Tree


@dataclass(frozen=True)
class SaverFunction:
    """A function that takes a checkpoint prefix and then the handles of objects.

    Attributes:
      name: in the library of the export.
      captures: the objects whose handles it takes, in order.
    """

    name: ExportName
    captures: Sequence[Capture]


@dataclass(frozen=True)
class SaverFunctions:
    """The functions that save and restore in a session."""

    save: SaverFunction
    restore: SaverFunction


def add_saver_functions(
    tree: Tree,
    library: ExportLibrary,
    functions: Mapping[int, ExportedFunction],
    states: Mapping[int, Sequence[SaveableState]],
    checkpoint: CheckpointLayout,
    expand: bool,
) -> SaverFunctions:
    """Write both functions into a library.

    Args:
      functions: by the number of their node.
      states: by the number of their object.
      expand: all replicas of distributed variables are restored, not only the first.
    """
    saved = _SavedState(tree, library, functions, states, checkpoint, expand)
    written = []
    for add_body, name in ((_add_save, "_traced_save"), (_add_restore, "_traced_restore")):
        builder = _SaverFunctionBuilder(saved)
        add_body(builder, saved)
        written.append(SaverFunction(builder.finish(name), builder.captures))
    return SaverFunctions(*written)


class _SavedState:
    """The values of a checkpoint: variables, then the states that functions save, then others."""

    def __init__(
        self,
        tree: Tree,
        library: ExportLibrary,
        functions: Mapping[int, ExportedFunction],
        states: Mapping[int, Sequence[SaveableState]],
        checkpoint: CheckpointLayout,
        expand: bool,
    ):
        self.library, self.checkpoint = library, checkpoint
        self._tree, self._functions, self._expand = tree, functions, expand
        self.with_functions: list[tuple[int, SaveableState]] = []
        self.without_functions: list[tuple[int, SaveableState]] = []
        for number, items in states.items():
            for state in items:
                of_kind = self.without_functions if state.save is None else self.with_functions
                of_kind.append((number, state))
        self.keys, self.types = self._tensors()

    def function(self, concrete: object) -> ExportedFunction:
        """Return a concrete function that saves or restores a state."""
        return self._functions[self._tree.number(concrete)]

    def handles(self, number: int) -> list[Capture]:
        """Return the handles of a variable: of its first replica, and of the other saved ones."""
        parts = self.checkpoint.variables[number].parts
        return [number, *((number, index) for index in range(1, len(parts)) if self._expand)]

    def _tensors(self) -> tuple[list[str], list[int]]:
        """Return the checkpoint key and the DataType of each tensor: first of variables, then of
        the states that functions save.
        """
        variables = self.checkpoint.variables.values()
        keys = [variable.key for variable in variables]
        types = [variable.parts[0].dtype.as_datatype_enum for variable in variables]
        for number, state in self.with_functions:
            keys += [self.checkpoint.keys.key(number, part) for part in state.parts]
            saving = self.library.definitions[self.function(state.save).name]
            types += [saving.signature.output_arg[place].type for place in state.results]
        return keys, types


class _SaverFunctionBuilder(FunctionBuilder):
    """A function that takes a checkpoint prefix and returns it when all work is done."""

    def __init__(self, saved: _SavedState) -> None:
        super().__init__(is_stateful=True)
        self._saved = saved
        self.prefix = self.argument(
            "file_prefix", schema.DT_STRING, shape=schema.TensorShapeProto()
        )
        self.captures: list[Capture] = []  # what the function takes after the prefix
        self.effects: list[str] = []  # the nodes that the result waits for
        self._arguments: dict[Capture, str] = {}

    def captured(self, capture: Capture, dtype: int) -> str:
        """Return the argument for the handle of an object."""
        if capture not in self._arguments:
            self._arguments[capture] = self.argument(f"captured_{len(self.captures)}", dtype)
            self.captures.append(capture)
        return self._arguments[capture]

    def call_bound(self, name: str, concrete: object, inputs: Sequence[str]) -> str:
        """Add a call of a function of a state, with its captures; return the name of the call's
        node.
        """
        function = self._saved.function(concrete)
        signature = self._saved.library.definitions[function.name].signature
        types = [argument.type for argument in signature.input_arg][len(inputs) :]
        arguments = [
            self.captured(capture, dtype) for capture, dtype in zip(function.bound(), types)
        ]
        node = self.call(name, function.name, signature, [*inputs, *arguments])
        self.effects.append(node.name)
        return str(node.name)

    def checkpoint_op(
        self, op: str, keys: Sequence[str], types: Sequence[int], tensors: Sequence[str] = ()
    ) -> str:
        """Add a SaveV2 or RestoreV2 of whole tensors; return the name of its node."""
        names = self.strings(f"{op}/tensor_names", [key.encode() for key in keys])
        slices = self.strings(f"{op}/shape_and_slices", [b""] * len(keys))
        node = self.node(op, op, [self.prefix, names, slices, *tensors])
        node.attr["dtypes"].list.type.extend(types)
        return str(node.name)

    def finish(self, hint: str) -> ExportName:
        """Write the function into the library and return its name."""
        node = self.identity("Identity", self.prefix, schema.DT_STRING, self.effects)
        self.result("identity", f"{node.name}:output:0", schema.DT_STRING)
        self.control_outputs(self.effects)
        return self._saved.library.write(self.function, hint)


def _add_save(builder: _SaverFunctionBuilder, saved: _SavedState) -> None:
    tensors = []
    for index, number in enumerate(saved.checkpoint.variables):
        handle = builder.captured(number, schema.DT_RESOURCE)
        read = builder.node(f"Read_{index}", "ReadVariableOp", [handle])
        read.attr["dtype"].type = saved.types[index]
        tensors.append(f"{read.name}:value:0")
    for index, (number, state) in enumerate(saved.with_functions):
        key = saved.checkpoint.keys.key(number, state.name).encode()
        given = [builder.strings(f"content_key_{index}", key)] if state.takes_key else []
        call = builder.call_bound(f"content_{index}", state.save, given)
        tensors += [f"{call}:output:{place}" for place in state.results]
    keys, types = [*saved.keys], [*saved.types]
    # The state as it is now: only the class of the object knows more.
    for number, state in saved.without_functions:
        for part, value in zip(state.parts, state.values):
            keys.append(saved.checkpoint.keys.key(number, part))
            types.append(value.dtype.as_datatype_enum)
            proto = schema.parse(schema.TensorProto, specs.tensor_bytes(value))
            tensors.append(builder.constant(f"kept_{len(tensors)}", proto))
    tensors.append(builder.strings("object_graph", saved.checkpoint.object_graph))
    keys.append(OBJECT_GRAPH_KEY)
    types.append(schema.DT_STRING)
    builder.effects.append(builder.checkpoint_op("SaveV2", keys, types, tensors))


def _add_restore(builder: _SaverFunctionBuilder, saved: _SavedState) -> None:
    # RestoreV2 takes no empty list.
    keys, types = saved.keys or [OBJECT_GRAPH_KEY], saved.types or [schema.DT_STRING]
    node = builder.checkpoint_op("RestoreV2", keys, types)
    restored = [f"{node}:tensors:{position}" for position in range(len(saved.keys))]
    for index, number in enumerate(saved.checkpoint.variables):
        for replica, capture in enumerate(saved.handles(number)):
            name = f"Assign_{index}_{replica}" if replica else f"Assign_{index}"
            handle = builder.captured(capture, schema.DT_RESOURCE)
            assign = builder.node(name, "AssignVariableOp", [handle, restored[index]])
            assign.attr["dtype"].type = saved.types[index]
            builder.effects.append(assign.name)
    position = len(saved.checkpoint.variables)
    for index, (_, state) in enumerate(saved.with_functions):
        given = restored[position : position + len(state.parts)]
        position += len(given)
        builder.call_bound(f"content_{index}", state.restore, given)
