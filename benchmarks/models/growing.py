"""Models of any size, for plots of growth: ``python -m benchmarks.models.growing KIND COUNT
DIRECTORY``.

``nodes``: a graph of TF 1.x style. ``functions``: a root with so many functions of three nodes.
``variables``: so many scalars. ``children``: a root with so many objects. ``assets``: a root with
so many files. ``signatures``: a graph of TF 1.x style with so many signatures of one node each.
``tags``: a graph with so many tags. No two nodes, functions or values are the same.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from reference_impl.format import schema
from reference_impl.format.bundle.reader import OBJECT_GRAPH_KEY, BundleReader
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.container import layout
from reference_impl.format.container.writer import LayoutWriter

KINDS = ("nodes", "functions", "variables", "children", "assets", "signatures", "tags")
_CHAIN = 50  # nodes that wait for one another


def nodes(count: int, directory: Path) -> None:
    """Write chains of additions and their sum. Needs no TensorFlow."""
    model, graph = _placeholder()
    ends, last = [], "x"
    for number in range(count):
        last = _add(graph, number, last)
        if number % _CHAIN == _CHAIN - 1 or number == count - 1:
            ends.append(last)
            last = "x"
    total = graph.graph_def.node.add(name="sum", op="AddN", input=ends)
    total.attr["T"].type, total.attr["N"].i = schema.DT_FLOAT, len(ends)
    _sign(graph, "serving_default", "sum")
    _write(model, directory)


def signatures(count: int, directory: Path) -> None:
    """Write additions with a signature each. Needs no TensorFlow."""
    model, graph = _placeholder()
    for number in range(count):
        _sign(graph, f"signature_{number}", _add(graph, number, "x"))
    _write(model, directory)


def tags(count: int, directory: Path) -> None:
    """Write an addition in a MetaGraph with many tags. Needs no TensorFlow."""
    model, graph = _placeholder()
    graph.meta_info_def.tags.extend(f"tag_{number}" for number in range(count - 1))
    _sign(graph, "serving_default", _add(graph, 0, "x"))
    _write(model, directory)


def children(count: int, directory: Path) -> None:
    """Write a root with objects that have no children. Needs no TensorFlow."""
    model, saved = _root()
    for number in range(count):
        _child(saved, f"child_{number}").user_object.CopyFrom(_GENERIC)
    _write_objects(model, directory)


def assets(count: int, directory: Path) -> None:
    """Write a root with files. Needs no TensorFlow."""
    model, saved = _root()
    for number in range(count):
        _child(saved, f"asset_{number}").asset.asset_file_def_index = number
        name = f"words_{number}.txt"
        model.meta_graphs[0].asset_file_def.add(filename=name).tensor_info.name = f"{name}:0"
    _write_objects(model, directory)
    (directory / "assets").mkdir()
    for number in range(count):
        (directory / "assets" / f"words_{number}.txt").write_text(f"{number}\n", encoding="utf-8")


def _placeholder() -> tuple[schema.SavedModel, schema.MetaGraphDef]:
    """Return a model of TF 1.x style with a placeholder called x."""
    model = schema.SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.meta_info_def.tensorflow_version = "1.15.0"
    graph.graph_def.versions.producer = 134
    x = graph.graph_def.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = schema.DT_FLOAT
    x.attr["shape"].shape.dim.add(size=-1)
    return model, graph


def _add(graph: schema.MetaGraphDef, number: int, other: str) -> str:
    """Add a node that adds x to another node; return its name."""
    name = f"scope_{number // 1000}/add_{number}"
    node = graph.graph_def.node.add(name=name, op="AddV2", input=[other, "x"])
    node.attr["T"].type = schema.DT_FLOAT
    return name


def _sign(graph: schema.MetaGraphDef, key: str, output: str) -> None:
    """Add a signature from x to a node."""
    signature = graph.signature_def[key]
    signature.method_name = "tensorflow/serving/predict"
    for infos, port, name in (
        (signature.inputs, "x", "x:0"),
        (signature.outputs, "y", f"{output}:0"),
    ):
        infos[port].name, infos[port].dtype = name, schema.DT_FLOAT
        infos[port].tensor_shape.dim.add(size=-1)


def _write(model: schema.SavedModel, directory: Path) -> None:
    with LayoutWriter(directory) as writer:
        writer.saved_model(model)


_GENERIC = schema.SavedUserObject(
    identifier="_generic_user_object", version=schema.VersionDef(producer=1, min_consumer=1)
)


def _root() -> tuple[schema.SavedModel, schema.SavedObjectGraph]:
    """Return a model of TF 2 with a root that has no children yet."""
    model = schema.SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.meta_info_def.tensorflow_version = "2.21.0"
    graph.graph_def.versions.producer = 2000
    graph.object_graph_def.nodes.add().user_object.CopyFrom(_GENERIC)
    return model, graph.object_graph_def


def _child(saved: schema.SavedObjectGraph, name: str) -> schema.SavedObject:
    """Return a new child of the root."""
    saved.nodes[0].children.add(node_id=len(saved.nodes), local_name=name)
    return saved.nodes.add()


def _write_objects(model: schema.SavedModel, directory: Path) -> None:
    """Write a model of TF 2 and a checkpoint that has its object graph and no values."""
    tracked = schema.TrackableObjectGraph()
    for node in model.meta_graphs[0].object_graph_def.nodes:
        tracked.nodes.add(
            children=[
                schema.TrackableObjectGraph.TrackableObject.ObjectReference(
                    node_id=child.node_id, local_name=child.local_name
                )
                for child in node.children
            ]
        )
    with LayoutWriter(directory) as writer, BundleWriter(writer.checkpoint_prefix) as bundle:
        bundle.add(OBJECT_GRAPH_KEY, schema.serialize(tracked))
        writer.saved_model(model)


def variables(count: int, directory: Path) -> None:
    """Save an object with a list of variables."""
    import tensorflow as tf

    import reference_impl

    root = tf.Module()
    root.values = [tf.Variable(float(number)) for number in range(count)]
    reference_impl.save(root, directory, options=reference_impl.SaveOptions(sync=False))


def functions(count: int, directory: Path) -> None:
    """Save an object with one function, and repeat the function in the file: tracing so many would
    take hours.
    """
    import tensorflow as tf

    import reference_impl

    root = tf.Module()
    root.f = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([None], name="x")])
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        reference_impl.save(root, Path(folder, "model"), {"serving_default": root.f})
        model = layout.read(Path(folder, "model"))
        message = model.saved_model
        with BundleReader(model.checkpoint_prefix) as reader:
            tracked = reader.object_graph()
        _repeat(message.meta_graphs[0], tracked, count)
        with LayoutWriter(directory) as writer, BundleWriter(writer.checkpoint_prefix) as bundle:
            bundle.add(OBJECT_GRAPH_KEY, schema.serialize(tracked))
            writer.saved_model(message)


def _repeat(graph: schema.MetaGraphDef, tracked: Any, count: int) -> None:
    saved, library = graph.object_graph_def, graph.graph_def.library
    (child,) = [child for child in saved.nodes[0].children if child.local_name == "f"]
    original = schema.copy_of(saved.nodes[child.node_id])
    (name,) = original.function.concrete_functions
    (definition,) = [
        schema.copy_of(item) for item in library.function if item.signature.name == name
    ]
    described = schema.copy_of(saved.concrete_functions[name])
    for number in range(1, count):
        definition.signature.name = f"{name}{number:06}"
        constant = next((node for node in definition.node_def if node.op == "Const"), None)
        if constant is not None:
            constant.attr["value"].tensor.float_val[:] = [float(number)]
        library.function.add().CopyFrom(definition)
        saved.concrete_functions[definition.signature.name].CopyFrom(described)
        original.function.concrete_functions[:] = [definition.signature.name]
        saved.nodes[0].children.add(node_id=len(saved.nodes), local_name=f"f_{number}")
        saved.nodes.add().CopyFrom(original)
        tracked.nodes[0].children.add(node_id=len(tracked.nodes), local_name=f"f_{number}")
        tracked.nodes.add()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("count", type=int)
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    makers = (nodes, functions, variables, children, assets, signatures, tags)
    {maker.__name__: maker for maker in makers}[options.kind](options.count, options.directory)


if __name__ == "__main__":
    main()
