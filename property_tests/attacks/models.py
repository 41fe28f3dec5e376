"""Attacks on those who read the MetaGraphs: each makes a directory that is, or pretends to be, a SavedModel."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from property_tests.attacks import forge
from reference_impl.format import schema
from reference_impl.format.varint import write_varint

ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202egnp\x9b31m"
FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
HTML = "<script>alert(1)</script><img src=x onerror=alert(1)>"
SECRET = "outside/secret"  # beside the model's directory


def _secret(folder: Path) -> Path:
    """A file that no reader of the model has any business with."""
    path = folder.parent / SECRET
    path.parent.mkdir(exist_ok=True)
    path.write_text("secret")
    return path


# Paths


def _asset(folder: Path, name: str) -> None:
    message = forge.model()
    definition = message.meta_graphs[0].asset_file_def.add(filename=name)
    definition.tensor_info.name = "asset:0"
    graph = message.meta_graphs[0].graph_def
    forge.constant(graph, "asset", b"x")
    _secret(folder)
    forge.write(folder, message)


def asset_up(folder: Path) -> None:
    """An asset called ../../outside/secret."""
    _asset(folder, "../../outside/secret")


def asset_absolute(folder: Path) -> None:
    """An asset called /etc/passwd."""
    _asset(folder, "/etc/passwd")


def asset_windows(folder: Path) -> None:
    r"""An asset called ..\..\outside\secret, a path on Windows."""
    _asset(folder, "..\\..\\outside\\secret")


def asset_link(folder: Path) -> None:
    """An asset that is a symbolic link out of the directory."""
    _asset(folder, "a.txt")
    (folder / "assets").mkdir()
    (folder / "assets" / "a.txt").symlink_to(_secret(folder))


def model_link(folder: Path) -> None:
    """A saved_model.pb that is a symbolic link out of the directory."""
    forge.write(folder.parent / "outside", forge.model())
    folder.mkdir()
    (folder / "saved_model.pb").symlink_to(folder.parent / "outside" / "saved_model.pb")


def variables_link(folder: Path) -> None:
    """A directory variables/ that is a symbolic link to another model's."""
    shutil.copytree(FIXTURES / "half_plus_two" / "model", folder)
    _secret(folder)
    (folder / "variables").rename(folder.parent / "outside" / "variables")
    (folder / "variables").symlink_to(folder.parent / "outside" / "variables")


def shard_link(folder: Path) -> None:
    """A shard that is a symbolic link to another file."""
    shutil.copytree(FIXTURES / "half_plus_two" / "model", folder)
    shard = folder / "variables" / "variables.data-00000-of-00001"
    outside = _secret(folder)
    outside.write_bytes(shard.read_bytes())
    shard.unlink()
    shard.symlink_to(outside)


def tags_as_paths(folder: Path) -> None:
    """Tags that are paths and control characters."""
    forge.write(folder, forge.model("../../outside", "/etc", ESCAPES))


def pipe(folder: Path) -> None:
    """A saved_model.pb that is a named pipe nobody writes to."""
    folder.mkdir()
    os.mkfifo(folder / "saved_model.pb")


# Bombs


def sparse_file(folder: Path) -> None:
    """A saved_model.pb of a terabyte that takes no disk."""
    forge.write(folder, b"")
    os.truncate(folder / "saved_model.pb", 1 << 40)


def empty_messages(folder: Path) -> None:
    """Sixteen million messages of two bytes, a hundred of memory each."""
    forge.write(folder, b"\x08\x01" + b"\x12\x00" * (16 << 20))


def deep_messages(folder: Path) -> None:
    """An attribute that holds a function with an attribute, five hundred times."""

    def field(number: int, content: bytes) -> bytes:
        return write_varint(number << 3 | 2) + write_varint(len(content)) + content

    value = b""
    for _ in range(500):
        value = field(10, field(2, field(1, b"k") + field(2, value)))  # func { attr { key value } }
    node = field(1, b"n") + field(2, b"Const") + field(5, field(1, b"k") + field(2, value))
    graph = field(1, field(4, b"serve")) + field(2, field(1, node))
    forge.write(folder, b"\x08\x01" + field(2, graph))


def nested_values(folder: Path) -> None:
    """A structure nested deeper than a reader's stack, as far as messages may be nested."""
    message = forge.seed("rfc_nested_arguments")
    spec = next(
        node.function.function_spec for node in message.meta_graphs[0].object_graph_def.nodes if node.HasField("function")
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


# Contradictions


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
    for at, to, name in ((0, 0, "me"), (0, 1, "a"), (1, 2, "b"), (2, 0, "c"), (2, 1, "d"), (0, 2, "a")):
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


# Names


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
    for name in ("__class__", "__del__", "__reduce__", "__dict__", "__init__", "variables", "signatures", "a b", ""):
        nodes[0].children.add(node_id=1, local_name=name)
    nodes[1].registered_name = nodes[1].user_object.metadata = "os.system"
    forge.write(folder, message)


def foreign_class(folder: Path) -> None:
    """An object of the class os.system, and a type of the module os in a function's signature."""
    message = forge.seed("rfc_nested_arguments")
    graph = message.meta_graphs[0]
    node = graph.object_graph_def.nodes.add()
    node.user_object.identifier = "os.system"
    node.user_object.metadata = '{"class_name": "os.system", "config": {"command": "touch outside/done"}}'
    graph.object_graph_def.nodes[0].children.add(node_id=len(graph.object_graph_def.nodes) - 1, local_name="evil")
    spec = next(node.function.function_spec for node in graph.object_graph_def.nodes if node.HasField("function"))
    held = spec.input_signature.type_spec_value
    held.type_spec_class, held.type_spec_class_name = 12, "os.system"
    held.type_state.string_value = "touch outside/done"
    forge.write(folder, message)


# What a model does


def _writes(graph: Any, folder: Path, prefix: str = "evil") -> str:
    name = forge.constant(graph, f"{prefix}_name", os.fsencode(folder.parent / "outside" / "done"))
    content = forge.constant(graph, f"{prefix}_content", b"written by a model")
    suffix = "" if hasattr(graph, "node") else ":output:0"
    forge.node_of(graph, prefix, "WriteFile", name + suffix, content + suffix)
    (folder.parent / "outside").mkdir(exist_ok=True)
    return prefix


def write_at_init(folder: Path) -> None:
    """A TF 1 model whose init op writes a file."""
    message = forge.model()
    graph = message.meta_graphs[0]
    _writes(graph.graph_def, folder)
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.constant(graph.graph_def, "x", b"y")
    forge.signature(graph, kind=schema.DT_STRING)
    forge.write(folder, message)


def write_in_initializer(folder: Path) -> None:
    """A TF 2 model with a table whose initialiser writes a file."""
    message = forge.seed("table_static")
    for made in message.meta_graphs[0].graph_def.library.function:
        if any(node.op == "LookupTableImportV2" for node in made.node_def):
            made.control_ret["evil"] = _writes(made, folder)
            made.signature.control_output.append("evil")
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def write_when_called(folder: Path) -> None:
    """A signature that writes a file when it is asked."""
    message = forge.model()
    graph = message.meta_graphs[0]
    node = graph.graph_def
    forge.constant(node, "c", b"y")
    answer = forge.node_of(node, "x", "Identity", "c", f"^{_writes(node, folder)}")
    answer.attr["T"].type = schema.DT_STRING
    forge.signature(graph, kind=schema.DT_STRING)
    forge.write(folder, message)


def python_function(folder: Path) -> None:
    """A PyFunc in the init op, which runs Python that somebody has registered."""
    message = forge.model()
    graph = message.meta_graphs[0]
    node = forge.node_of(graph.graph_def, "evil", "PyFunc")
    node.attr["token"].s = b"pyfunc_0"
    node.attr["Tin"].list.SetInParent()
    node.attr["Tout"].list.SetInParent()
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.write(folder, message)


def abort_at_init(folder: Path) -> None:
    """An Assert in the init op that always fails."""
    message = forge.model()
    graph = message.meta_graphs[0].graph_def
    condition = forge.node_of(graph, "no", "Const")
    condition.attr["dtype"].type = schema.DT_BOOL
    tensor = condition.attr["value"].tensor
    tensor.dtype = schema.DT_BOOL
    tensor.tensor_shape.SetInParent()
    tensor.bool_val.append(False)
    node = forge.node_of(graph, "evil", "Assert", "no", forge.constant(graph, "why", b"never"))
    node.attr["T"].list.type.append(schema.DT_STRING)
    message.meta_graphs[0].signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.write(folder, message)
