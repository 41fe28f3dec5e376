"""Models of any size, for plots of growth: ``python -m benchmarks.models.growing KIND COUNT
DIRECTORY``.

``nodes``: a graph of TF 1.x style. ``functions``: a root with so many functions of three nodes.
``variables``: so many scalars. No two nodes, functions or values are the same.
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

KINDS = ("nodes", "functions", "variables")
_CHAIN = 50  # nodes that wait for one another


def nodes(count: int, directory: Path) -> None:
    """Write chains of additions and their sum. Needs no TensorFlow."""
    model = schema.SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.meta_info_def.tensorflow_version = "1.15.0"
    graph.graph_def.versions.producer = 134
    x = graph.graph_def.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = schema.DT_FLOAT
    x.attr["shape"].shape.dim.add(size=-1)
    ends, last = [], "x"
    for number in range(count):
        node = graph.graph_def.node.add(name=f"scope_{number // 1000}/add_{number}", op="AddV2")
        node.input.extend([last, "x"])
        node.attr["T"].type = schema.DT_FLOAT
        last = node.name
        if number % _CHAIN == _CHAIN - 1 or number == count - 1:
            ends.append(last)
            last = "x"
    total = graph.graph_def.node.add(name="sum", op="AddN", input=ends)
    total.attr["T"].type, total.attr["N"].i = schema.DT_FLOAT, len(ends)
    signature = graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    for infos, key, name in ((signature.inputs, "x", "x:0"), (signature.outputs, "y", "sum:0")):
        infos[key].name, infos[key].dtype = name, schema.DT_FLOAT
        infos[key].tensor_shape.dim.add(size=-1)
    with LayoutWriter(directory) as writer:
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
    {"nodes": nodes, "functions": functions, "variables": variables}[options.kind](
        options.count, options.directory
    )


if __name__ == "__main__":
    main()
