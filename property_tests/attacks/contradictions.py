"""Attacks by contradiction: SavedModels whose parts call themselves, contain themselves, are
missing or there twice.
"""

from __future__ import annotations

from pathlib import Path

from property_tests.attacks import forge
from reference_impl.format import schema
from reference_impl.format.wire import bytes_field


def recursive_function(folder: Path) -> None:
    """A function that calls itself, and two that call each other; the restore op is a call."""
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.function(graph, "self", "self")
    forge.function(graph, "ping", "pong")
    forge.function(graph, "pong", "ping")
    for name in ("self", "ping"):
        forge.call(forge.node_of(graph.graph_def, f"call_{name}", "StatefulPartitionedCall"), name)
    graph.saver_def.restore_op_name = "call_self"
    graph.saver_def.filename_tensor_name = "x:0"
    forge.write(folder, message)


def recursive_signature(folder: Path) -> None:
    """A TF 2 model whose signature's function calls itself."""
    message = forge.seed("rfc_training_flag")
    library = message.meta_graphs[0].graph_def.library
    for made in library.function:
        forge.call(forge.node_of(made, "again", "StatefulPartitionedCall"), made.signature.name)
    forge.write(folder, message)


def dangling_edge(folder: Path) -> None:
    """A node with an input that no node makes."""
    message = forge.model()
    graph = message.meta_graphs[0]
    node = forge.node_of(graph.graph_def, "x", "Identity", "nowhere:0")
    node.attr["T"].type = schema.DT_FLOAT
    forge.signature(graph)
    forge.write(folder, message)


def missing_function(folder: Path) -> None:
    """A call of a function that is not in the library."""
    message = forge.model()
    graph = message.meta_graphs[0]
    node = forge.node_of(graph.graph_def, "x", "PartitionedCall")
    node.attr["f"].func.name = "nobody"
    node.attr["Tin"].list.SetInParent()
    node.attr["Tout"].list.type.append(schema.DT_FLOAT)
    forge.signature(graph)
    forge.write(folder, message)


def cycle_of_nodes(folder: Path) -> None:
    """Two nodes that wait for each other."""
    message = forge.model()
    graph = message.meta_graphs[0]
    for name, other in (("x", "y"), ("y", "x")):
        forge.node_of(graph.graph_def, name, "Identity", other).attr["T"].type = schema.DT_FLOAT
    forge.signature(graph)
    forge.write(folder, message)


def duplicate_nodes(folder: Path) -> None:
    """Two nodes of one name."""
    message = forge.model()
    graph = message.meta_graphs[0]
    for text in (b"a", b"b"):
        forge.constant(graph.graph_def, "x", text)
    forge.signature(graph, kind=schema.DT_STRING)
    forge.write(folder, message)


def duplicate_attribute(folder: Path) -> None:
    """A node with an attribute twice. Attributes without a name, which get one of no letters, make
    the message as large again as it was.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.constant(graph.graph_def, "x", b"x")
    forge.signature(graph, kind=schema.DT_STRING)
    value = bytes_field(2, schema.serialize(schema.AttrValue(i=1)))
    attribute, nameless = bytes_field(5, bytes_field(1, b"k" * 12) + value), bytes_field(5, value)
    nodes = [bytes_field(1, b"twice") + attribute * 2]
    nodes += [bytes_field(1, b"n%d" % number) + nameless for number in range(len(attribute) // 2)]
    data = schema.serialize(graph.graph_def) + b"".join(bytes_field(1, node) for node in nodes)
    graph.ClearField("graph_def")
    whole = bytes_field(2, schema.serialize(graph) + bytes_field(2, data))
    forge.write(folder, b"\x08\x01" + whole)


def duplicate_functions(folder: Path) -> None:
    """Two functions of one name, which differ."""
    message = forge.seed("rfc_training_flag")
    library = message.meta_graphs[0].graph_def.library
    copy = library.function.add()
    copy.CopyFrom(library.function[0])
    forge.constant(copy, "more", b"x")
    forge.write(folder, message)


def colliding_tags(folder: Path) -> None:
    """Two MetaGraphs with the same tags, in another order."""
    message = forge.model("a", "b")
    forge.add_meta_graph(message, "b", "a", "a")
    forge.write(folder, message)


def cyclic_objects(folder: Path) -> None:
    """An object graph of cycles, a node that is its own child, and names given twice."""
    message = forge.model()
    nodes = message.meta_graphs[0].object_graph_def.nodes
    for _ in range(3):
        node = nodes.add()
        node.user_object.identifier = "_generic_user_object"
        node.user_object.version.producer = node.user_object.version.min_consumer = 1
    for at, to, name in (
        (0, 0, "me"),
        (0, 1, "a"),
        (1, 2, "b"),
        (2, 0, "c"),
        (2, 1, "d"),
        (0, 2, "a"),
    ):
        nodes[at].children.add(node_id=to, local_name=name)
    forge.write(folder, message)


def cyclic_tuple(folder: Path) -> None:
    """A tuple that contains itself, which no Python can build."""
    message = forge.model()
    nodes = message.meta_graphs[0].object_graph_def.nodes
    for identifier in ("_generic_user_object", "trackable_tuple_wrapper"):
        node = nodes.add()
        node.user_object.identifier = identifier
        node.user_object.version.producer = node.user_object.version.min_consumer = 1
    nodes[0].children.add(node_id=1, local_name="t")
    nodes[1].children.add(node_id=1, local_name="0")
    forge.write(folder, message)


def child_out_of_range(folder: Path) -> None:
    """A child that is node 7 of 1, and one that is node -1."""
    message = forge.model()
    node = message.meta_graphs[0].object_graph_def.nodes.add()
    node.user_object.identifier = "_generic_user_object"
    node.children.add(node_id=7, local_name="a")
    node.children.add(node_id=-1, local_name="b")
    forge.write(folder, message)
