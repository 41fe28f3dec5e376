"""The object graph, and files beside saved_model.pb."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from property_tests.faults.losses.registry import each, loss, set_field


@loss
def children(graph: Any, model: Path) -> bool:
    """The last child of each module has another name."""
    nodes = graph.object_graph_def.nodes
    plain = [
        node
        for node in nodes
        if node.WhichOneof("kind") == "user_object"
        and node.user_object.identifier != "signature_map"
    ]

    def change(node: Any) -> bool:
        names = [
            child for child in node.children if child.local_name not in ("signatures", "keras_api")
        ]
        for child in names[-1:]:
            child.local_name = f"lost_{child.local_name}"
        return bool(names)

    return each(plain, change)


@loss
def identities(graph: Any, model: Path) -> bool:
    """A child under two names is two objects."""
    nodes, seen, done = graph.object_graph_def.nodes, set(), False
    for node in list(nodes):
        for child in node.children:
            if nodes[child.node_id].WhichOneof("kind") == "variable":
                if child.node_id in seen:
                    nodes.add().CopyFrom(nodes[child.node_id])
                    child.node_id, done = len(nodes) - 1, True
                seen.add(child.node_id)
    return done


@loss
def slots(graph: Any, model: Path) -> bool:
    """The slots of optimizers are missing."""

    def change(node: Any) -> bool:
        found = len(node.slot_variables)
        node.ClearField("slot_variables")
        return bool(found)

    return each(graph.object_graph_def.nodes, change)


@loss
def initializers(graph: Any, model: Path) -> bool:
    """The initialisers of tables and other resources do not run."""
    found = [
        child
        for node in graph.object_graph_def.nodes
        for child in node.children
        if child.local_name == "_initialize"
    ]
    return each(found, lambda child: set_field(child, "local_name", "_lost"))


@loss
def assets(graph: Any, model: Path) -> bool:
    """Each asset is the file of another one, or has a line more in front."""
    files = (
        sorted(path for path in (model / "assets").rglob("*") if path.is_file())
        if (model / "assets").is_dir()
        else []
    )
    contents = [path.read_bytes() for path in files]
    for path, data in zip(files, [*contents[1:], b"lost\n" + b"".join(contents[:1])]):
        path.unlink()
        path.write_bytes(data)
    return bool(files)


@loss
def extra_assets(graph: Any, model: Path) -> bool:
    """The folder assets.extra is missing."""
    found = (model / "assets.extra").is_dir()
    shutil.rmtree(model / "assets.extra", ignore_errors=True)
    return found


@loss
def aliases(graph: Any, model: Path) -> bool:
    """The further names of functions are missing."""
    found = len(graph.meta_info_def.function_aliases)
    graph.meta_info_def.ClearField("function_aliases")
    return bool(found)


@loss
def additions(graph: Any, model: Path) -> bool:
    """What this project stores beyond TensorFlow's format is missing: how variables get their first
    values.
    """
    found = [key for key in graph.collection_def if key.startswith("savedmodel_compat.")]
    for key in found:
        del graph.collection_def[key]
    return bool(found)


@loss
def main_op(graph: Any, model: Path) -> bool:
    """The op that initialises the model is missing."""
    found = [
        key for key in ("saved_model_main_op", "legacy_init_op") if key in graph.collection_def
    ]
    found += [key for key in graph.signature_def if key == "__saved_model_init_op"]
    for key in found:
        del (graph.signature_def if key.startswith("__") else graph.collection_def)[key]
    return bool(found)


@loss
def table_rows(graph: Any, model: Path) -> bool:
    """The last line of each asset is missing."""
    files = (
        sorted(path for path in (model / "assets").rglob("*") if path.is_file())
        if (model / "assets").is_dir()
        else []
    )
    for path in files:
        lines = path.read_bytes().splitlines(keepends=True)
        path.unlink()
        path.write_bytes(b"".join(lines[:-1]))
    return bool(files)


@loss
def lost_assets(graph: Any, model: Path) -> bool:
    """The files in assets/ are missing."""
    found = (
        [path for path in (model / "assets").rglob("*") if path.is_file()]
        if (model / "assets").is_dir()
        else []
    )
    for path in found:
        path.unlink()
    return bool(found)


@loss
def claimed_version(graph: Any, model: Path) -> bool:
    """The model says that another TensorFlow wrote it."""
    return set_field(graph.meta_info_def, "tensorflow_version", "2.1.0")
