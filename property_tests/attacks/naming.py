"""Attacks by names: what a SavedModel calls its parts, for terminals, browsers and Python to trip
over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from property_tests.attacks import forge
from reference_impl.format import schema

ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202egnp\x9b31m"
HTML = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def _named(text: str) -> Any:
    message = forge.seed("rfc_training_flag")
    graph = message.meta_graphs[0]
    graph.meta_info_def.tags.append(text)
    forge.constant(graph.graph_def, text, b"x")
    forge.node_of(graph.graph_def, "odd_op", text)
    forge.signature(graph, text, f"{text}:0", schema.DT_STRING)
    graph.collection_def[text].bytes_list.value.append(b"x")
    nodes = graph.object_graph_def.nodes
    nodes[0].children.add(node_id=0, local_name=text)
    return message


def terminal_escapes(folder: Path) -> None:
    """Tags, nodes, ops, signatures, objects, collections called like terminal escapes."""
    forge.write(folder, _named(ESCAPES))


def html_names(folder: Path) -> None:
    """The same called like HTML."""
    forge.write(folder, _named(HTML))


def python_names(folder: Path) -> None:
    """Children called __class__, __del__, __reduce__, _set_attr, and classes called os.system."""
    message = forge.model()
    nodes = message.meta_graphs[0].object_graph_def.nodes
    for _ in range(2):
        node = nodes.add()
        node.user_object.identifier = "_generic_user_object"
        node.user_object.version.producer = node.user_object.version.min_consumer = 1
    for name in (
        "__class__",
        "__del__",
        "__reduce__",
        "__dict__",
        "__init__",
        "variables",
        "signatures",
        "a b",
        "",
    ):
        nodes[0].children.add(node_id=1, local_name=name)
    nodes[1].registered_name = nodes[1].user_object.metadata = "os.system"
    forge.write(folder, message)


def foreign_class(folder: Path) -> None:
    """An object of the class os.system, and a type of the module os in a function's signature."""
    message = forge.seed("rfc_nested_arguments")
    graph = message.meta_graphs[0]
    node = graph.object_graph_def.nodes.add()
    node.user_object.identifier = "os.system"
    node.user_object.metadata = (
        '{"class_name": "os.system", "config": {"command": "touch outside/done"}}'
    )
    graph.object_graph_def.nodes[0].children.add(
        node_id=len(graph.object_graph_def.nodes) - 1, local_name="evil"
    )
    spec = next(
        node.function.function_spec
        for node in graph.object_graph_def.nodes
        if node.HasField("function")
    )
    held = spec.input_signature.type_spec_value
    held.type_spec_class, held.type_spec_class_name = 12, "os.system"
    held.type_state.string_value = "touch outside/done"
    forge.write(folder, message)


def _with_child(folder: Path, name: str, kind: str) -> None:
    message = forge.seed("table_static")
    nodes = message.meta_graphs[0].object_graph_def.nodes
    numbers = [number for number, node in enumerate(nodes) if node.WhichOneof("kind") == kind]
    nodes[0].children.add(node_id=numbers[-1], local_name=name)
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def child_that_a_load_calls(folder: Path) -> None:
    """A child function called _maybe_initialize_trackable, which every loader calls."""
    _with_child(folder, "_maybe_initialize_trackable", "function")


def child_that_a_save_calls(folder: Path) -> None:
    """A child function called _trackable_children, which every save calls."""
    _with_child(folder, "_trackable_children", "function")


def child_that_breaks_a_load(folder: Path) -> None:
    """A child called __class__, and one that takes the place of what TensorFlow notes in an
    object.
    """
    message = forge.model()
    nodes = message.meta_graphs[0].object_graph_def.nodes
    for _ in range(2):
        node = nodes.add()
        node.user_object.identifier = "_generic_user_object"
        node.user_object.version.producer = node.user_object.version.min_consumer = 1
    for name in ("__class__", "_self_unconditional_checkpoint_dependencies", "_track_trackable"):
        nodes[0].children.add(node_id=1, local_name=name)
    forge.write(folder, message)
