"""Attacks by an object graph that contradicts the checkpoint, the functions or itself, or that
looks like what it is not.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from property_tests.attacks import forge
from reference_impl.format import schema
from reference_impl.format.container import layout

SOUND = Path(__file__).parents[2] / "fixtures_v1" / "module_functions" / "model"


def _edited(folder: Path, change: Callable[[Any], None]) -> None:
    """A real model of TF 2 with its checkpoint, whose MetaGraph is changed."""
    shutil.copytree(SOUND, folder)
    message = layout.read(SOUND).saved_model
    change(message.meta_graphs[0])
    forge.write(folder, message)


def _scale(graph: Any) -> Any:
    """The variable `scale`, a float32 scalar that two functions capture."""
    return next(
        node.variable for node in graph.object_graph_def.nodes if node.variable.name == "scale"
    )


def variable_of_another_shape(folder: Path) -> None:
    """A variable of shape [7] whose stored value is a scalar."""
    _edited(folder, lambda graph: _scale(graph).shape.dim.add(size=7))


def variable_of_a_negative_shape(folder: Path) -> None:
    """A variable of shape [-9]."""
    _edited(folder, lambda graph: _scale(graph).shape.dim.add(size=-9))


def variable_of_another_dtype(folder: Path) -> None:
    """A variable of int32 whose stored value is a float32, of as many bytes."""
    _edited(folder, lambda graph: setattr(_scale(graph), "dtype", schema.DT_INT32))


def variable_of_no_dtype(folder: Path) -> None:
    """A variable of the dtype 9999."""
    _edited(folder, lambda graph: setattr(_scale(graph), "dtype", 9999))


def unknown_synchronization(folder: Path) -> None:
    """A variable of the synchronization 77."""
    _edited(folder, lambda graph: setattr(_scale(graph), "synchronization", 77))


def unknown_aggregation(folder: Path) -> None:
    """A variable of the aggregation 99."""
    _edited(folder, lambda graph: setattr(_scale(graph), "aggregation", 99))


def slots_out_of_range(folder: Path) -> None:
    """A slot variable that is node -3, of the variable that is node 999."""

    def change(graph: Any) -> None:
        graph.object_graph_def.nodes[4].slot_variables.add(
            original_variable_node_id=999, slot_name="m", slot_variable_node_id=-3
        )

    _edited(folder, change)


def captures_out_of_range(folder: Path) -> None:
    """Functions that capture the objects -1 and 10^9."""

    def change(graph: Any) -> None:
        for name, number in (("__inference_multiply_57", -1), ("__inference_multiply_112", 10**9)):
            graph.object_graph_def.concrete_functions[name].bound_inputs[0] = number

    _edited(folder, change)


def captures_of_a_function(folder: Path) -> None:
    """A function that captures a function in place of a variable."""

    def change(graph: Any) -> None:
        graph.object_graph_def.concrete_functions["__inference_multiply_57"].bound_inputs[0] = 13

    _edited(folder, change)


def more_captures_than_arguments(folder: Path) -> None:
    """A function of two arguments that captures fifty variables."""

    def change(graph: Any) -> None:
        graph.object_graph_def.concrete_functions["__inference_nested_120"].bound_inputs.extend(
            [1] * 50
        )

    _edited(folder, change)


def traces_of_nothing(folder: Path) -> None:
    """A function whose trace is not in the library, and one whose trace nothing describes."""

    def change(graph: Any) -> None:
        nodes = graph.object_graph_def.nodes
        nodes[13].function.concrete_functions[0] = "nowhere"
        del graph.object_graph_def.concrete_functions["__inference_nested_120"]

    _edited(folder, change)


def resource_without_functions(folder: Path) -> None:
    """A table whose functions that make and fill it are variables."""

    def change(graph: Any) -> None:
        for child in graph.object_graph_def.nodes[5].children:
            child.node_id = 1

    _edited(folder, change)


def signatures_of_variables(folder: Path) -> None:
    """Signatures that are variables."""

    def change(graph: Any) -> None:
        for child in graph.object_graph_def.nodes[6].children:
            child.node_id = 1

    _edited(folder, change)


def slots_of_functions(folder: Path) -> None:
    """A slot variable that is a function, of a function."""

    def change(graph: Any) -> None:
        graph.object_graph_def.nodes[4].slot_variables.add(
            original_variable_node_id=13, slot_name="m", slot_variable_node_id=14
        )

    _edited(folder, change)


def saved_by_variables(folder: Path) -> None:
    """A table whose content is saved and restored by variables."""

    def change(graph: Any) -> None:
        pair = graph.object_graph_def.nodes[5].saveable_objects["table"]
        pair.save_function = pair.restore_function = 1

    _edited(folder, change)


def list_of_a_far_index(folder: Path) -> None:
    """A list whose items are the numbers 10^9 and -1."""

    def change(graph: Any) -> None:
        children = graph.object_graph_def.nodes[2].children
        children[0].local_name, children[1].local_name = "1000000000", "-1"

    _edited(folder, change)


def constant_of_another_op(folder: Path) -> None:
    """A captured constant that is a placeholder without a value."""

    def change(graph: Any) -> None:
        name = graph.object_graph_def.nodes[21].constant.operation
        node = next(node for node in graph.graph_def.node if node.name == name)
        node.op = "Placeholder"
        del node.attr["value"]

    _edited(folder, change)


def constant_without_a_value(folder: Path) -> None:
    """A captured constant whose node has no attribute `value`."""

    def change(graph: Any) -> None:
        name = graph.object_graph_def.nodes[21].constant.operation
        del next(node for node in graph.graph_def.node if node.name == name).attr["value"]

    _edited(folder, change)


def _constant(folder: Path, size: int, content: bytes) -> None:
    """Change the value of a captured constant."""

    def change(graph: Any) -> None:
        name = graph.object_graph_def.nodes[21].constant.operation
        node = next(node for node in graph.graph_def.node if node.name == name)
        node.attr.pop("_output_shapes")
        tensor = node.attr["value"].tensor
        tensor.ClearField("int64_val")
        tensor.tensor_content = content
        tensor.tensor_shape.dim.add(size=size)

    _edited(folder, change)


def constant_of_a_negative_size(folder: Path) -> None:
    """A captured constant of shape [-9] with six elements, which TensorFlow's Python loader takes
    for shape [6].
    """
    _constant(folder, -9, bytes(48))


def constant_of_other_bytes(folder: Path) -> None:
    """A captured constant of seven elements with the bytes of six."""
    _constant(folder, 7, bytes(48))


def dependencies_out_of_range(folder: Path) -> None:
    """Objects that depend on the objects -1 and 10^9, and one that depends on itself."""

    def change(graph: Any) -> None:
        nodes = graph.object_graph_def.nodes
        for number, other in ((1, -1), (5, 10**9), (4, 4)):
            nodes[number].dependencies.add(node_id=other, local_name="before")

    _edited(folder, change)


def captured_tensor_of_nothing(folder: Path) -> None:
    """A captured tensor of a function that is not there, of a name that no node has."""

    def change(graph: Any) -> None:
        captured = graph.object_graph_def.nodes[21].captured_tensor
        captured.name, captured.concrete_function = "nowhere:999", "nobody"

    _edited(folder, change)


def asset_out_of_range(folder: Path) -> None:
    """An asset with the number -5 of a list of one."""
    _edited(
        folder,
        lambda graph: setattr(graph.object_graph_def.nodes[12].asset, "asset_file_def_index", -5),
    )


def checkpoint_of_other_objects(folder: Path) -> None:
    """A checkpoint whose own object graph has children out of range, in a circle, and keys that it
    does not have.
    """
    shutil.copytree(SOUND, folder)
    shutil.rmtree(folder / "variables")
    tracked = schema.TrackableObjectGraph()
    for number, (name, child) in enumerate((("scale", 1), ("again", 0), ("far", 10**9))):
        node = tracked.nodes.add()
        node.attributes.add(
            name="VARIABLE_VALUE", full_name="scale", checkpoint_key=f"nowhere/{number}"
        )
        tracked.nodes[0].children.add(node_id=child, local_name=name)
    tracked.nodes[1].children.add(node_id=-7, local_name="back")
    value = np.empty((), object)
    value[()] = schema.serialize(tracked)
    forge.checkpoint(folder, _CHECKPOINTABLE_OBJECT_GRAPH=value)


def training_in_a_text(folder: Path) -> None:
    """A function with two traces, one of which was called with the text "training=True"."""
    message = forge.seed("rfc_training_flag")
    graph = message.meta_graphs[0].object_graph_def
    for node in graph.nodes:
        if node.HasField("function"):
            node.function.function_spec.fullargspec.named_tuple_value.values[
                0
            ].value.list_value.values[1].string_value = "mode"
    for function in graph.concrete_functions.values():
        argument = function.canonicalized_input_signature.tuple_value.values[0].tuple_value.values[
            1
        ]
        argument.string_value = "training=True" if argument.bool_value else "other"
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def looks_like_an_optimizer(folder: Path) -> None:
    """An object of a user with the attributes of a Keras optimizer, whose counter is a weight of
    two dimensions.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    for name, shape in (("weight", (2,)), ("counter", (3, 3)), ("rate", ())):
        forge.variable(graph, name, *shape)
    nodes = graph.object_graph_def.nodes
    for identifier in ("_generic_user_object", "trackable_list_wrapper"):
        node = nodes.add()
        node.user_object.identifier = identifier
        node.user_object.version.producer = node.user_object.version.min_consumer = 1
    solver, listed = nodes[4], nodes[5]
    nodes[0].children.add(node_id=4, local_name="solver")
    for name, number in (("_variables", 5), ("_iterations", 2), ("_learning_rate", 3)):
        solver.children.add(node_id=number, local_name=name)
    for position, number in enumerate((2, 3)):
        listed.children.add(node_id=number, local_name=str(position))
    del nodes[0].children[1:3]  # the solver alone leads to them
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)
