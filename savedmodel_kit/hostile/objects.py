"""Object graphs that contradict themselves, the checkpoint or the functions.

All are made from one model of TensorFlow 2. It has variables, a list, a table with an asset, a
captured constant, functions and signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from reference_impl.format import schema
from reference_impl.format.names import LIST, OBJECT_GRAPH_KEY, TUPLE
from savedmodel_kit.forge import tables
from savedmodel_kit.hostile.kind import PREFIX, copied, hostile, message_of, write_message

_BASE = "module_functions"
_FAR = 10**9


def _edited(folder: Path, change: Callable[[schema.MetaGraphDef], None]) -> None:
    """Write the base model with its MetaGraph changed; its checkpoint stays as it is."""
    message = message_of(_BASE)
    change(message.meta_graphs[0])
    write_message(copied(_BASE, folder), message)


def _of_kind(graph: schema.MetaGraphDef, kind: str) -> Iterator[schema.SavedObject]:
    """Yield the nodes of a kind, such as ``variable``."""
    return (node for node in graph.object_graph_def.nodes if node.WhichOneof("kind") == kind)


def _first(graph: schema.MetaGraphDef, kind: str) -> schema.SavedObject:
    return next(_of_kind(graph, kind))


def _number(graph: schema.MetaGraphDef, kind: str) -> int:
    """Return the number of the first node of a kind."""
    kinds = [node.WhichOneof("kind") for node in graph.object_graph_def.nodes]
    return kinds.index(kind)


def _identified(graph: schema.MetaGraphDef, identifier: str) -> schema.SavedObject:
    """Return the first user object of an identifier."""
    return next(
        node for node in graph.object_graph_def.nodes if node.user_object.identifier == identifier
    )


def _capturing(graph: schema.MetaGraphDef) -> schema.SavedConcreteFunction:
    """Return a function with captures."""
    functions = graph.object_graph_def.concrete_functions
    return next(functions[name] for name in sorted(functions) if functions[name].bound_inputs)


def _constant_node(graph: schema.MetaGraphDef) -> schema.NodeDef:
    """Return the graph node of the captured constant."""
    name = _first(graph, "constant").constant.operation
    return next(node for node in graph.graph_def.node if node.name == name)


# Numbers of nodes


@hostile("SM-OBJ-1", "L2")
def no_objects(folder: Path) -> None:
    """An object graph without a node."""

    def change(graph: schema.MetaGraphDef) -> None:
        del graph.object_graph_def.nodes[:]

    _edited(folder, change)


@hostile("SM-OBJ-2", "L2")
def child_out_of_range(folder: Path) -> None:
    """A child of the root that is node 10^9."""

    def change(graph: schema.MetaGraphDef) -> None:
        graph.object_graph_def.nodes[0].children.add(node_id=_FAR, local_name="far")

    _edited(folder, change)


@hostile("SM-OBJ-2", "L2")
def child_below_zero(folder: Path) -> None:
    """A child of the root that is node -1."""

    def change(graph: schema.MetaGraphDef) -> None:
        graph.object_graph_def.nodes[0].children.add(node_id=-1, local_name="before")

    _edited(folder, change)


@hostile("SM-OBJ-2", "L2")
def dependency_out_of_range(folder: Path) -> None:
    """A variable that depends on node -1."""

    def change(graph: schema.MetaGraphDef) -> None:
        _first(graph, "variable").dependencies.add(node_id=-1, local_name="before")

    _edited(folder, change)


@hostile("SM-OBJ-2", "L2")
def slot_out_of_range(folder: Path) -> None:
    """An object with a slot variable that is node -3, of the variable that is node 999."""

    def change(graph: schema.MetaGraphDef) -> None:
        graph.object_graph_def.nodes[0].slot_variables.add(
            original_variable_node_id=999, slot_name="m", slot_variable_node_id=-3
        )

    _edited(folder, change)


@hostile("SM-OBJ-2", "L2")
def capture_out_of_range(folder: Path) -> None:
    """A function that captures node 10^9."""

    def change(graph: schema.MetaGraphDef) -> None:
        _capturing(graph).bound_inputs[0] = _FAR

    _edited(folder, change)


@hostile("SM-OBJ-2", "L2")
def asset_out_of_range(folder: Path) -> None:
    """An asset of the number -5 in a list of one."""

    def change(graph: schema.MetaGraphDef) -> None:
        _first(graph, "asset").asset.asset_file_def_index = -5

    _edited(folder, change)


@hostile("SM-OBJ-6", "L2")
def tuple_in_itself(folder: Path) -> None:
    """A tuple whose first element is the tuple."""

    def change(graph: schema.MetaGraphDef) -> None:
        made = _identified(graph, LIST)
        made.user_object.identifier = TUPLE
        numbers = [node.user_object.identifier for node in graph.object_graph_def.nodes]
        made.children[0].node_id = numbers.index(TUPLE)

    _edited(folder, change)


@hostile("SM-KEY-4", "L2")
def checkpoint_graph_of_numbers(folder: Path) -> None:
    """A checkpoint whose object graph is a float32 vector in place of a string."""
    copied(_BASE, folder)
    data = bytes(8)
    key = OBJECT_GRAPH_KEY.encode()
    tables.bundle(folder / PREFIX, {key: tables.tensor(data, shape=(2,))}, data)


# Kinds


@hostile("SM-KIND-3", "L2")
def variable_of_no_dtype(folder: Path) -> None:
    """A variable of the dtype 9999, which does not exist."""

    def change(graph: schema.MetaGraphDef) -> None:
        _first(graph, "variable").variable.dtype = 9999

    _edited(folder, change)


@hostile("SM-KIND-3", "L2")
def variable_of_a_negative_size(folder: Path) -> None:
    """A variable with a dimension of -9."""

    def change(graph: schema.MetaGraphDef) -> None:
        _first(graph, "variable").variable.shape.dim.add(size=-9)

    _edited(folder, change)


@hostile("SM-KIND-3", "L2")
def unknown_synchronization(folder: Path) -> None:
    """A variable of the synchronization 77, which does not exist."""

    def change(graph: schema.MetaGraphDef) -> None:
        _first(graph, "variable").variable.synchronization = 77

    _edited(folder, change)


@hostile("SM-KIND-3", "L2")
def unknown_aggregation(folder: Path) -> None:
    """A variable of the aggregation 99, which does not exist."""

    def change(graph: schema.MetaGraphDef) -> None:
        _first(graph, "variable").variable.aggregation = 99

    _edited(folder, change)


@hostile("SM-KIND-4", "L2")
def variable_of_another_shape(folder: Path) -> None:
    """A variable with one dimension more than its stored value."""

    def change(graph: schema.MetaGraphDef) -> None:
        _first(graph, "variable").variable.shape.dim.add(size=7)

    _edited(folder, change)


@hostile("SM-KIND-4", "L2")
def variable_of_another_dtype(folder: Path) -> None:
    """A variable of int32 whose stored value is a float32, of as many bytes."""

    def change(graph: schema.MetaGraphDef) -> None:
        _first(graph, "variable").variable.dtype = schema.DT_INT32

    _edited(folder, change)


@hostile("SM-KIND-5", "L2")
def constant_of_another_op(folder: Path) -> None:
    """A captured constant whose graph node is a placeholder."""

    def change(graph: schema.MetaGraphDef) -> None:
        node = _constant_node(graph)
        node.op = "Placeholder"
        del node.attr["value"]

    _edited(folder, change)


@hostile("SM-KIND-5", "L2")
def constant_without_a_value(folder: Path) -> None:
    """A captured constant whose graph node has no attribute `value`."""

    def change(graph: schema.MetaGraphDef) -> None:
        del _constant_node(graph).attr["value"]

    _edited(folder, change)


@hostile("SM-KIND-5", "L2")
def constant_of_other_bytes(folder: Path) -> None:
    """A captured constant of seven int64 with the bytes of six."""

    def change(graph: schema.MetaGraphDef) -> None:
        tensor = _constant_node(graph).attr["value"].tensor
        tensor.Clear()
        tensor.dtype = schema.DT_INT64
        tensor.tensor_shape.dim.add(size=7)
        tensor.tensor_content = bytes(48)

    _edited(folder, change)


@hostile("SM-KIND-6", "L2")
def table_made_by_a_variable(folder: Path) -> None:
    """A table whose functions that make and fill it are a variable."""

    def change(graph: schema.MetaGraphDef) -> None:
        for child in _first(graph, "resource").children:
            child.node_id = _number(graph, "variable")

    _edited(folder, change)


@hostile("SM-KIND-7", "L2")
def list_of_a_far_index(folder: Path) -> None:
    """A list with the element 10^9, and nothing before."""

    def change(graph: schema.MetaGraphDef) -> None:
        _identified(graph, LIST).children[0].local_name = str(_FAR)

    _edited(folder, change)


@hostile("SM-KIND-10", "L2")
def saved_by_a_variable(folder: Path) -> None:
    """A table whose content is saved and restored by a variable."""

    def change(graph: schema.MetaGraphDef) -> None:
        pair = _first(graph, "resource").saveable_objects["table"]
        pair.save_function = pair.restore_function = _number(graph, "variable")

    _edited(folder, change)


# Functions


@hostile("SM-FN-1", "L2")
def trace_not_in_the_library(folder: Path) -> None:
    """A function whose trace is called `nowhere`."""

    def change(graph: schema.MetaGraphDef) -> None:
        _first(graph, "function").function.concrete_functions[0] = "nowhere"

    _edited(folder, change)


@hostile("SM-FN-1", "L2")
def trace_not_described(folder: Path) -> None:
    """A function whose trace has no entry in `concrete_functions`."""

    def change(graph: schema.MetaGraphDef) -> None:
        name = _first(graph, "function").function.concrete_functions[0]
        del graph.object_graph_def.concrete_functions[name]

    _edited(folder, change)


@hostile("SM-FN-3", "L2")
def capture_of_a_function(folder: Path) -> None:
    """A function that captures a function in place of a variable."""

    def change(graph: schema.MetaGraphDef) -> None:
        _capturing(graph).bound_inputs[0] = _number(graph, "function")

    _edited(folder, change)


@hostile("SM-FN-8", "L2")
def argument_of_no_kind(folder: Path) -> None:
    """A function whose signature has an argument of no kind, which is not None."""

    def change(graph: schema.MetaGraphDef) -> None:
        canonical = _capturing(graph).canonicalized_input_signature
        canonical.tuple_value.values[0].tuple_value.values.add()

    _edited(folder, change)
