"""Attacks by the path that an op gets at load: models that hide which file a restore or init op
writes, moves or reads.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from property_tests.attacks import forge
from reference_impl.format import schema

_INIT = "__saved_model_init_op"


def _with_saver() -> tuple[Any, Any]:
    """Return a model of TF 1 whose SaverDef restores by the op "all" from the file "file", and its
    MetaGraph.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.constant(graph.graph_def, "file", b"model")
    graph.saver_def.filename_tensor_name, graph.saver_def.restore_op_name = "file:0", "all"
    graph.saver_def.save_tensor_name, graph.saver_def.version = "file:0", schema.SaverDef.V2
    return message, graph


def _write(folder: Path, message: Any) -> None:
    """Write a model with a checkpoint beside a folder for what it writes elsewhere."""
    forge.write(folder, message)
    forge.checkpoint(folder, x=np.float32([1]))
    (folder.parent / "outside").mkdir(exist_ok=True)


def _save(body: Any, path: str, name: str = "evil") -> None:
    """Add a SaveV2 of one string to a graph or a function."""
    port = "" if hasattr(body, "node") else ":output:0"
    inputs = [path]
    for part, text in (("names", b"x"), ("slices", b"")):
        inputs.append(forge.constant(body, f"{name}_{part}", text) + port)
        _made_vector(body)
    inputs.append(forge.constant(body, f"{name}_value", b"written by a model") + port)
    forge.node_of(body, name, "SaveV2", *inputs).attr["dtypes"].list.type.append(schema.DT_STRING)


def _made_vector(body: Any) -> None:
    nodes = body.node if hasattr(body, "node") else body.node_def
    nodes[-1].attr["value"].tensor.tensor_shape.dim.add(size=1)


def _join(graph: Any, separator: bytes, *texts: bytes) -> str:
    """Add a StringJoin of the checkpoint's prefix and some texts."""
    parts = [forge.constant(graph, f"part_{number}", text) for number, text in enumerate(texts)]
    node = forge.node_of(graph, "path", "StringJoin", "file", *parts)
    node.attr["N"].i, node.attr["separator"].s = 1 + len(texts), separator
    return "path"


def write_by_separator(folder: Path) -> None:
    """A restore op that saves beside the checkpoint, by a separator that leads out of the
    directory.
    """
    message, graph = _with_saver()
    _save(graph.graph_def, _join(graph.graph_def, b"/../../../outside/", b"done"))
    forge.node_of(graph.graph_def, "all", "NoOp", "^evil")
    _write(folder, message)


def write_by_joined_dots(folder: Path) -> None:
    """A restore op that saves beside the checkpoint, by texts that lead out of the directory only
    when joined.
    """
    message, graph = _with_saver()
    _save(graph.graph_def, _join(graph.graph_def, b"", b"/.", b"./.", b"./.", b"./outside/done"))
    forge.node_of(graph.graph_def, "all", "NoOp", "^evil")
    _write(folder, message)


def write_in_second_round(folder: Path) -> None:
    """A restore op with a loop that reads the given checkpoint in its first round and saves
    elsewhere in its second.
    """
    message, graph = _with_saver()
    nodes = graph.graph_def
    condition, body = nodes.library.function.add(), nodes.library.function.add()
    condition.signature.name, body.signature.name = "condition", "body"
    for function in (condition, body):
        function.signature.input_arg.add(name="round", type=schema.DT_INT32)
        function.signature.input_arg.add(name="path", type=schema.DT_STRING)
    _number(condition, "rounds", 2)
    forge.node_of(condition, "less", "Less", "round", "rounds:output:0").attr[
        "T"
    ].type = schema.DT_INT32
    condition.signature.output_arg.add(name="more", type=schema.DT_BOOL)
    condition.ret["more"] = "less:z:0"
    _number(body, "one", 1)
    forge.node_of(body, "next", "AddV2", "round", "one:output:0").attr["T"].type = schema.DT_INT32
    forge.constant(body, "elsewhere", os.fsencode(folder.parent / "outside" / "done"))
    _save(body, "path")
    body.signature.output_arg.add(name="next_round", type=schema.DT_INT32)
    body.signature.output_arg.add(name="next_path", type=schema.DT_STRING)
    body.ret["next_round"], body.ret["next_path"] = "next:z:0", "elsewhere:output:0"
    body.control_ret["evil"] = "evil"
    body.signature.control_output.append("evil")
    body.signature.is_stateful = True
    _number(nodes, "zero", 0)
    loop = forge.node_of(nodes, "loop", "While", "zero", "file")
    loop.attr["T"].list.type.extend([schema.DT_INT32, schema.DT_STRING])
    loop.attr["cond"].func.name, loop.attr["body"].func.name = "condition", "body"
    forge.node_of(nodes, "all", "NoOp", "^loop")
    _write(folder, message)


def _number(body: Any, name: str, value: int) -> None:
    node = forge.node_of(body, name, "Const")
    node.attr["dtype"].type = node.attr["value"].tensor.dtype = schema.DT_INT32
    node.attr["value"].tensor.tensor_shape.SetInParent()
    node.attr["value"].tensor.int_val.append(value)


def move_another_checkpoint(folder: Path) -> None:
    """A restore op that merges another checkpoint into the given one, so that the other one is
    moved away.
    """
    message, graph = _with_saver()
    forge.checkpoint(folder.parent / "outside", x=np.float32([2]))
    forge.constant(
        graph.graph_def,
        "others",
        os.fsencode(folder.parent / "outside" / "variables" / "variables"),
    )
    _made_vector(graph.graph_def)
    forge.node_of(graph.graph_def, "evil", "MergeV2Checkpoints", "others", "file").attr[
        "delete_old_dirs"
    ].b = True
    forge.node_of(graph.graph_def, "all", "NoOp", "^evil")
    _write(folder, message)


def write_given_checkpoint(folder: Path) -> None:
    """A restore op that writes the checkpoint that it is to restore."""
    message, graph = _with_saver()
    _save(graph.graph_def, "file")
    forge.node_of(graph.graph_def, "all", "NoOp", "^evil")
    _write(folder, message)


def write_own_asset(folder: Path) -> None:
    """An init op that writes a file of the model's own assets."""
    message = _with_asset(folder, b"words.txt")
    graph = message.meta_graphs[0]
    forge.node_of(
        graph.graph_def,
        "evil",
        "WriteFile",
        "asset",
        forge.constant(graph.graph_def, "content", b"evil"),
    )
    graph.signature_def[_INIT].outputs[_INIT].name = "evil"
    _write(folder, message)


def _with_asset(folder: Path, text: bytes) -> Any:
    message = forge.model()
    graph = message.meta_graphs[0]
    graph.asset_file_def.add(filename="words.txt").tensor_info.name = (
        forge.constant(graph.graph_def, "asset", text) + ":0"
    )
    (folder / "assets").mkdir(parents=True)
    (folder / "assets" / "words.txt").write_bytes(b"words")
    return message


def read_unfed_asset(folder: Path) -> None:
    """A signature that reads the tensor of an asset, which nobody feeds in a call: its constant
    names another file.
    """
    message = _with_asset(folder, os.fsencode(folder.parent / "outside" / "secret"))
    graph = message.meta_graphs[0]
    forge.node_of(graph.graph_def, "x", "ReadFile", "asset")
    forge.signature(graph, kind=schema.DT_STRING)
    _write(folder, message)
    (folder.parent / "outside" / "secret").write_bytes(b"secret")


def print_to_file(folder: Path) -> None:
    """An init op that prints to a file."""
    message = forge.model()
    graph = message.meta_graphs[0]
    text = forge.constant(graph.graph_def, "text", b"written by a model")
    stream = b"file://" + os.fsencode(folder.parent / "outside" / "done")
    forge.node_of(graph.graph_def, "evil", "PrintV2", text).attr["output_stream"].s = stream
    graph.signature_def[_INIT].outputs[_INIT].name = "evil"
    _write(folder, message)


def write_behind_eight_paths(folder: Path) -> None:
    """An init op that sends a tensor to nine files, the last of them in the model's own
    directory.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    node = forge.node_of(
        graph.graph_def, "evil", "DebugIdentity", forge.constant(graph.graph_def, "text", b"evil")
    )
    node.attr["T"].type, node.attr["tensor_name"].s = schema.DT_STRING, b"text:0"
    urls = [b"file:///nowhere/%d" % number for number in range(8)]
    node.attr["debug_urls"].list.s.extend(
        [*urls, b"file://" + os.fsencode(folder / "assets.extra")]
    )
    graph.signature_def[_INIT].outputs[_INIT].name = "evil"
    _write(folder, message)
