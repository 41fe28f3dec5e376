"""Attacks by what a model does: SavedModels that write, run Python or fail when they are loaded or called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from property_tests.attacks import forge
from reference_impl.format import schema


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
