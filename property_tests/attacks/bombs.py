"""Attacks by size: SavedModels that are, or promise, more than a reader has memory, stack or time
for.
"""

from __future__ import annotations

import os
from pathlib import Path

from property_tests.attacks import forge
from reference_impl.format import schema
from reference_impl.format.wire import bytes_field, write_varint


def sparse_file(folder: Path) -> None:
    """A saved_model.pb of a terabyte that takes no disk."""
    forge.write(folder, b"")
    os.truncate(folder / "saved_model.pb", 1 << 40)


def empty_messages(folder: Path) -> None:
    """Sixteen million messages of two bytes, a hundred of memory each."""
    forge.write(folder, b"\x08\x01" + b"\x12\x00" * (16 << 20))


def deep_messages(folder: Path) -> None:
    """An attribute that holds a function with an attribute, five hundred times."""
    value = b""
    for _ in range(500):
        value = bytes_field(
            10, bytes_field(2, bytes_field(1, b"k") + bytes_field(2, value))
        )  # func { attr { key value } }
    node = (
        bytes_field(1, b"n")
        + bytes_field(2, b"Const")
        + bytes_field(5, bytes_field(1, b"k") + bytes_field(2, value))
    )
    graph = bytes_field(1, bytes_field(4, b"serve")) + bytes_field(2, bytes_field(1, node))
    forge.write(folder, b"\x08\x01" + bytes_field(2, graph))


def nested_values(folder: Path) -> None:
    """A structure nested deeper than a reader's stack, as far as messages may be nested."""
    message = forge.seed("rfc_nested_arguments")
    spec = next(
        node.function.function_spec
        for node in message.meta_graphs[0].object_graph_def.nodes
        if node.HasField("function")
    )
    value = spec.input_signature
    value.Clear()
    for _ in range(44):
        value = value.list_value.values.add()
    value.none_value.SetInParent()
    forge.write(folder, message)


def huge_constant(folder: Path) -> None:
    """A constant of two exabytes in forty bytes."""
    message = forge.model()
    graph = message.meta_graphs[0]
    node = forge.node_of(graph.graph_def, "x", "Const")
    node.attr["dtype"].type = schema.DT_FLOAT
    tensor = node.attr["value"].tensor
    tensor.dtype = schema.DT_FLOAT
    tensor.float_val.append(1)
    for _ in range(3):
        tensor.tensor_shape.dim.add(size=1 << 20)
    forge.signature(graph)
    forge.write(folder, message)


def many_huge_constants(folder: Path) -> None:
    """A hundred captured constants, each of a hundred bytes that stand for 64 MiB."""
    message = forge.model()
    graph = message.meta_graphs[0]
    nodes = graph.object_graph_def.nodes
    nodes.add().user_object.identifier = "_generic_user_object"
    nodes[0].user_object.version.producer = nodes[0].user_object.version.min_consumer = 1
    for number in range(100):
        node = forge.node_of(graph.graph_def, f"c{number}", "Const")
        node.attr["dtype"].type = schema.DT_FLOAT
        tensor = node.attr["value"].tensor
        tensor.dtype = schema.DT_FLOAT
        tensor.float_val.append(1)
        tensor.tensor_shape.dim.add(size=1 << 24)
        nodes[0].children.add(node_id=len(nodes), local_name=f"c{number}")
        nodes.add().constant.operation = node.name
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def huge_variable(folder: Path) -> None:
    """A variable of 2^58 elements that the checkpoint does not have."""
    message = forge.model()
    forge.variable(message.meta_graphs[0], "v", 1 << 29, 1 << 29)
    forge.write(folder, message)
    forge.checkpoint(folder, other=1.0)


def million_functions(folder: Path) -> None:
    """A library of a million functions."""
    parts = []
    for number in range(1_000_000):
        name = b"f%d" % number
        signature = b"\x0a" + bytes([len(name)]) + name
        definition = b"\x0a" + bytes([len(signature)]) + signature
        parts.append(b"\x0a" + bytes([len(definition)]) + definition)
    library = b"".join(parts)
    graph_def = b"\x12" + write_varint(len(library)) + library
    meta_graph = b"\x0a\x07\x22\x05serve\x12" + write_varint(len(graph_def)) + graph_def
    forge.write(folder, b"\x08\x01\x12" + write_varint(len(meta_graph)) + meta_graph)


def million_children(folder: Path) -> None:
    """An object with 300 000 children, all of them one node."""
    message = forge.model()
    nodes = message.meta_graphs[0].object_graph_def.nodes
    nodes.add().user_object.identifier = "_generic_user_object"
    nodes.add().user_object.identifier = "_generic_user_object"
    for number in range(300_000):
        nodes[0].children.add(node_id=1, local_name=f"c{number}")
    forge.write(folder, message)


def doubling_calls(folder: Path) -> None:
    """Sixty functions, each calling the next one twice: 2^60 calls."""
    message = forge.model()
    graph = message.meta_graphs[0]
    for number in range(60):
        forge.function(graph, f"f{number}", f"f{number + 1}", f"f{number + 1}")
    forge.function(graph, "f60")
    forge.call(forge.node_of(graph.graph_def, "x", "StatefulPartitionedCall"), "f0")
    saver = graph.saver_def
    saver.restore_op_name, saver.filename_tensor_name, saver.save_tensor_name = "x", "x:0", "x:0"
    forge.write(folder, message)
