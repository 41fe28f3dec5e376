"""Attacks by what a model does: SavedModels that write, run Python or fail when they are loaded or
called.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from property_tests.attacks import forge
from reference_impl.format import schema
from reference_impl.format.bundle.checksum import masked_crc32c
from savedmodel_common.serving.messages import PredictionLog


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


def write_in_nested_calls(folder: Path) -> None:
    """An init op that calls a function that calls a function that writes a file; its name is handed
    down through the calls.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    name = forge.constant(graph.graph_def, "name", os.fsencode(folder.parent / "outside" / "done"))
    for number in range(3):
        made = graph.graph_def.library.function.add()
        made.signature.name = f"level_{number}"
        made.signature.input_arg.add(name="path", type=schema.DT_STRING)
        if number == 2:
            forge.node_of(
                made,
                "evil",
                "WriteFile",
                "path",
                forge.constant(made, "content", b"!") + ":output:0",
            )
        else:
            _call(made, "evil", f"level_{number + 1}", "path")
        made.control_ret["evil"] = "evil"
        made.signature.control_output.append("evil")
    _call(graph.graph_def, "evil", "level_0", name)
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    (folder.parent / "outside").mkdir(exist_ok=True)
    forge.write(folder, message)


def _call(graph: Any, name: str, function: str, argument: str) -> None:
    node = forge.node_of(graph, name, "StatefulPartitionedCall", argument)
    forge.call(node, function)
    node.attr["Tin"].list.type.append(schema.DT_STRING)


def write_in_twin(folder: Path) -> None:
    """An init op that calls a harmless function, which the graph optimizer replaces by one that
    writes a file.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    for name in ("calm", "twin"):
        made = graph.graph_def.library.function.add()
        made.signature.name = name
        made.signature.is_stateful = True
        made.attr["api_implements"].s = b"twins"
        made.attr["api_preferred_device"].s = b"GPU" if name == "calm" else b"CPU"
        made.signature.output_arg.add(name="out", type=schema.DT_STRING)
        made.ret["out"] = forge.constant(made, "same", b"same") + ":output:0"
        if name == "twin":
            made.control_ret["evil"] = _writes(made, folder)
            made.signature.control_output.append("evil")
    # The optimizer looks at graphs of four nodes or more, and at nodes with a whole device name.
    others = [forge.constant(graph.graph_def, f"c_{number}", b"") for number in range(4)]
    node = forge.node_of(graph.graph_def, "call", "StatefulPartitionedCall")
    node.device = "/job:localhost/replica:0/task:0/device:CPU:0"
    forge.call(node, "calm")
    node.attr["Tout"].list.type.append(schema.DT_STRING)
    forge.node_of(graph.graph_def, "evil", "NoOp", "^call", *[f"^{name}" for name in others])
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.write(folder, message)


def write_in_gradient(folder: Path) -> None:
    """An init op that takes the gradient of a harmless function; the listed gradient function
    writes a file.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    library = graph.graph_def.library
    for name, takes in (("calm", 1), ("slope", 2)):
        made = library.function.add()
        made.signature.name = name
        for number in range(takes):
            made.signature.input_arg.add(name=f"x_{number}", type=schema.DT_FLOAT)
        made.signature.output_arg.add(name="out", type=schema.DT_FLOAT)
        made.ret["out"] = "x_0"
        if name == "slope":
            made.signature.is_stateful = True
            made.control_ret["evil"] = _writes(made, folder)
            made.signature.control_output.append("evil")
    library.gradient.add(function_name="calm", gradient_func="slope")
    one = forge.node_of(graph.graph_def, "one", "Const")
    one.attr["dtype"].type = one.attr["value"].tensor.dtype = schema.DT_FLOAT
    one.attr["value"].tensor.tensor_shape.SetInParent()
    one.attr["value"].tensor.float_val.append(1.0)
    node = forge.node_of(graph.graph_def, "evil", "SymbolicGradient", "one", "one")
    node.attr["f"].func.name = "calm"
    node.attr["Tin"].list.type.extend([schema.DT_FLOAT] * 2)
    node.attr["Tout"].list.type.append(schema.DT_FLOAT)
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.write(folder, message)


def write_when_collected(folder: Path) -> None:
    """A TF 2 model with a table that writes a file when Python collects it."""
    message = forge.seed("table_static")
    graph = message.meta_graphs[0]
    objects = graph.object_graph_def.nodes
    numbers = {
        child.node_id
        for item in objects
        for child in item.children
        if child.local_name == "_destroy_resource"
    }
    names = {name for number in numbers for name in objects[number].function.concrete_functions}
    for made in graph.graph_def.library.function:
        if made.signature.name in names:
            made.control_ret["evil"] = _writes(made, folder)
            made.signature.control_output.append("evil")
            made.signature.is_stateful = True
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def read_by_attribute(folder: Path) -> None:
    """An init op that reads the file which its attribute names, an op that only old producers may
    use.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    graph.graph_def.versions.producer = 18
    node = forge.node_of(graph.graph_def, "evil", "Skipgram")
    node.attr["filename"].s = os.fsencode(folder.parent / "outside" / "secret")
    node.attr["batch_size"].i = 1
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.write(folder, message)
    (folder.parent / "outside").mkdir(exist_ok=True)
    (folder.parent / "outside" / "secret").write_bytes(b"a secret of a few words " * 50)


def write_behind_damage(folder: Path) -> None:
    """A TF 2 model whose table writes a file when it is initialised, with a damaged collection of
    this project.
    """
    write_in_initializer(folder)
    path = folder / "saved_model.pb"
    message = schema.parse(schema.SavedModel, path.read_bytes())
    message.meta_graphs[0].collection_def["savedmodel_compat.extension"].bytes_list.value.append(
        b"no base64 at all"
    )
    path.write_bytes(message.SerializeToString())


def read_behind_asset(folder: Path) -> None:
    """An init op that reads a file whose path begins with that of an asset and leads out of the
    directory.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    asset = graph.asset_file_def.add(filename="words.txt")
    asset.tensor_info.name = forge.constant(graph.graph_def, "asset", b"words.txt") + ":0"
    tail = forge.constant(graph.graph_def, "tail", b"/../../../outside/secret")
    forge.node_of(graph.graph_def, "path", "StringJoin", "asset", tail).attr["N"].i = 2
    forge.node_of(graph.graph_def, "evil", "ReadFile", "path")
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.write(folder, message)
    (folder / "assets").mkdir()
    (folder / "assets" / "words.txt").write_bytes(b"words")
    (folder.parent / "outside").mkdir(exist_ok=True)
    (folder.parent / "outside" / "secret").write_bytes(b"secret")


def restore_elsewhere(folder: Path) -> None:
    """A restore op that reads another checkpoint than that of the model."""
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.checkpoint(folder, x=np.float32([1]))
    forge.checkpoint(folder.parent / "outside", x=np.float32([2]))
    nodes = graph.graph_def
    forge.constant(nodes, "file", b"model")
    for name, text in (
        ("prefix", os.fsencode(folder.parent / "outside" / "variables" / "variables")),
        ("names", b"x"),
        ("slices", b""),
    ):
        forge.constant(nodes, name, text)
    for name in ("names", "slices"):
        nodes.node[-1 if name == "slices" else -2].attr["value"].tensor.tensor_shape.dim.add(size=1)
    restore = forge.node_of(nodes, "restore", "RestoreV2", "prefix", "names", "slices")
    restore.attr["dtypes"].list.type.append(schema.DT_FLOAT)
    forge.node_of(nodes, "all", "NoOp", "^restore", "^file")
    graph.saver_def.filename_tensor_name, graph.saver_def.restore_op_name = "file:0", "all"
    graph.saver_def.version = schema.SaverDef.V2
    forge.write(folder, message)


def foreign_op_at_init(folder: Path) -> None:
    """An init op that no TensorFlow has, which some library may bring along."""
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.node_of(graph.graph_def, "evil", "Zero>LaunchMissiles")
    graph.meta_info_def.stripped_op_list.op.add(name="Zero>LaunchMissiles", is_stateful=True)
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.write(folder, message)


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
    message.meta_graphs[0].signature_def["__saved_model_init_op"].outputs[
        "__saved_model_init_op"
    ].name = "evil"
    forge.write(folder, message)


def write_when_warmed_up(folder: Path) -> None:
    """A signature that writes a file, and a warm-up request that asks it while a model server loads
    the model.
    """
    write_when_called(folder)
    request = PredictionLog()
    request.predict_log.request.model_spec.signature_name = "serving_default"
    forge.warmup(folder, request.SerializeToString())


def warmup_of_junk(folder: Path) -> None:
    """A signature that writes a file, a warm-up request that asks it, and behind that one a record
    that is damaged.
    """
    write_when_warmed_up(folder)
    with (folder / "assets.extra" / "tf_serving_warmup_requests").open("ab") as file:
        file.write(bytes(100))


def warmup_bomb(folder: Path) -> None:
    """A warm-up request of a gigabyte that takes no disk, with the right checksum of its length."""
    write_when_called(folder)
    forge.warmup(folder)
    file = folder / "assets.extra" / "tf_serving_warmup_requests"
    length = (1 << 30).to_bytes(8, "little")
    file.write_bytes(length + masked_crc32c(length).to_bytes(4, "little"))
    os.truncate(file, (1 << 30) + 16)


def warmup_of_many(folder: Path) -> None:
    """A million empty warm-up requests."""
    write_when_called(folder)
    forge.warmup(folder, *[b""] * 1_000_000)


def warmup_of_nobody(folder: Path) -> None:
    """A warm-up request of a signature that the model does not have."""
    write_when_called(folder)
    request = PredictionLog()
    request.classify_log.request.model_spec.signature_name = "nobody"
    forge.warmup(folder, request.SerializeToString())
