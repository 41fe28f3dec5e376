"""Attacks by what TensorFlow computes while it imports a graph: shape inference runs stateless ops
on constants.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from property_tests.attacks import forge
from reference_impl.format import schema


def write_at_import(folder: Path) -> None:
    """A shape in the main graph that an op computes which sends it to a file, too."""
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.constant(graph.graph_def, "x", b"y")
    forge.signature(graph, kind=schema.DT_STRING)
    _shaped_by_debugging(graph.graph_def, folder)
    forge.write(folder, message)


def write_at_import_of_function(folder: Path) -> None:
    """The same in a function that nobody calls."""
    message = forge.seed("table_static")
    _shaped_by_debugging(unused_function(message), folder)
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def memory_at_import(folder: Path) -> None:
    """A shape that is the largest of a thousand million equal numbers, in a function that nobody
    calls.
    """
    message = forge.seed("table_static")
    body = unused_function(message)
    sizes = forge.numbers(body, "sizes", 1_000_000_000)
    filled = forge.node_of(
        body, "filled", "Fill", sizes, forge.numbers(body, "one", 1, scalar=True)
    )
    filled.attr["T"].type = filled.attr["index_type"].type = schema.DT_INT32
    largest = forge.node_of(
        body, "largest", "Max", "filled:output:0", forge.numbers(body, "axis", 0, scalar=True)
    )
    largest.attr["T"].type = largest.attr["Tidx"].type = schema.DT_INT32
    largest.attr["keep_dims"].b = True
    reshape(body, forge.numbers(body, "value", 1), "largest:output:0")
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def outputs_at_import(folder: Path) -> None:
    """A Split into two thousand million parts, in a function that nobody calls."""
    message = forge.seed("table_static")
    body = unused_function(message)
    node = forge.node_of(
        body,
        "evil",
        "Split",
        forge.numbers(body, "axis", 0, scalar=True),
        forge.numbers(body, "value", 1),
    )
    node.attr["num_split"].i = 2_000_000_000
    node.attr["T"].type = schema.DT_INT32
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def unused_function(message: Any) -> Any:
    body = message.meta_graphs[0].graph_def.library.function.add()
    body.signature.name = "__inference_unused"
    return body


def reshape(body: Any, value: str, shape: str) -> None:
    node = forge.node_of(body, "shaped", "Reshape", value, shape)
    node.attr["T"].type = node.attr["Tshape"].type = schema.DT_INT32


def _shaped_by_debugging(body: Any, folder: Path) -> None:
    node = forge.node_of(body, "evil", "DebugIdentity", forge.numbers(body, "shape", 1))
    node.attr["T"].type = schema.DT_INT32
    node.attr["debug_urls"].list.s.append(
        b"file://" + os.fsencode(folder.parent / "outside" / "done")
    )
    node.attr["tensor_name"].s = b"shape:0"
    reshape(
        body, forge.numbers(body, "value", 1), "evil" if hasattr(body, "node") else "evil:output:0"
    )
    (folder.parent / "outside").mkdir(exist_ok=True)
