"""An exporter in a hundred lines: ``python numpy_exporter.py EXPORT DIRECTORY`` writes an artifact.

It needs no TensorFlow.

An artifact is a SavedModel in ``model/`` and requests in ``io/`` with the exporter's own answers,
here computed by NumPy. The harness adds ``provenance.json``. Exit status 65 is a refusal; its
reason is the last line on stderr.
"""

import json
import pathlib
import sys

import numpy as np

from reference_impl.format import schema
from reference_impl.format.values import tensor_proto
from savedmodel_common import tensors

FLOAT = schema.DT_FLOAT
RNG = np.random.default_rng(7)


class Graph:
    """A MetaGraph under construction; every method returns the name of a tensor."""

    def __init__(self):
        self.saved_model = schema.SavedModel(saved_model_schema_version=1)
        self.meta_graph = self.saved_model.meta_graphs.add()
        self.meta_graph.meta_info_def.tags.append("serve")
        self.meta_graph.graph_def.versions.producer = 27  # the GraphDef version of the ops below

    def node(self, name, op, *inputs, **types):
        node = self.meta_graph.graph_def.node.add(name=name, op=op)
        node.input.extend(inputs)
        for attr, dtype in types.items():
            node.attr[attr].type = dtype
        return name

    def placeholder(self, name, shape):
        self.node(name, "Placeholder", dtype=FLOAT)
        for size in shape:  # readers derive the shapes of outputs from it
            self.meta_graph.graph_def.node[-1].attr["shape"].shape.dim.add().size = size
        return name

    def constant(self, name, value):
        self.node(name, "Const", dtype=FLOAT)
        self.meta_graph.graph_def.node[-1].attr["value"].tensor.CopyFrom(tensor_proto.encode(value))
        return name

    def signature(self, key, inputs, outputs):
        """``inputs`` and ``outputs``: {name: (tensor, shape)}, -1 for an unknown dimension."""
        signature = self.meta_graph.signature_def[key]
        signature.method_name = "tensorflow/serving/predict"
        for side, given in ((signature.inputs, inputs), (signature.outputs, outputs)):
            for name, (tensor, shape) in given.items():
                side[name].name, side[name].dtype = tensor + ":0", FLOAT
                for size in shape:
                    side[name].tensor_shape.dim.add().size = size


def linear(graph):
    """``y = x @ w + b``; returns the requests, each with its answer."""
    w, b = RNG.random((3, 2), np.float32), RNG.random(2, np.float32)
    x = graph.placeholder("x", (-1, 3))
    product = graph.node("product", "MatMul", x, graph.constant("w", w), T=FLOAT)
    y = graph.node("y", "AddV2", product, graph.constant("b", b), T=FLOAT)
    graph.signature("serving_default", {"x": (x, (-1, 3))}, {"y": (y, (-1, 2))})
    given = [RNG.random((rows, 3), np.float32) for rows in (1, 4, 0)]
    return [("serving_default", {"x": value}, {"y": value @ w + b}) for value in given]


def scaled(graph):
    """Two signatures of one input: ``half`` and ``minus``."""
    x = graph.placeholder("x", (-1,))
    half = graph.node("half_of_x", "Mul", x, graph.constant("half", np.float32(0.5)), T=FLOAT)
    minus = graph.node("minus_x", "Neg", x, T=FLOAT)
    graph.signature("half", {"x": (x, (-1,))}, {"y": (half, (-1,))})
    graph.signature("minus", {"x": (x, (-1,))}, {"y": (minus, (-1,))})
    value = np.float32([1, -2, 0.25])
    return [("half", {"x": value}, {"y": value / 2}), ("minus", {"x": value}, {"y": -value})]


EXPORTS = {"linear": linear, "scaled": scaled}


def export(name, directory):
    if name not in EXPORTS:
        print(f"this exporter knows {', '.join(EXPORTS)}, not {name}", file=sys.stderr)
        return 65
    graph = Graph()
    requests = EXPORTS[name](graph)
    for folder in ("model", "io"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    (directory / "model" / "saved_model.pb").write_bytes(schema.serialize(graph.saved_model))
    entries = []
    for index, (key, inputs, outputs) in enumerate(requests):
        files = {"inputs": f"{index}.in.npz", "outputs": f"{index}.out.npz"}
        for side, values in (("inputs", inputs), ("outputs", outputs)):
            tensors.save(
                directory / "io" / files[side],
                {k: tensors.from_numpy(v) for k, v in values.items()},
            )
        entries.append(
            {
                "id": f"{key}-{index}",
                "kind": "signature",
                "tags": ["serve"],
                "signature": key,
                **files,
            }
        )
    tolerance = {
        "rtol": 1e-6,
        "atol": 0.0,
        "reason": "NumPy and TensorFlow may add the products in another order",
    }
    io = {"schema": 1, "stateful": False, "tolerance": tolerance, "requests": entries}
    (directory / "io" / "io.json").write_text(json.dumps(io, indent=1))
    (directory / "versions.json").write_text(
        json.dumps({"numpy_exporter": "1.0", "numpy": np.__version__})
    )
    return 0


if __name__ == "__main__":
    sys.exit(export(sys.argv[1], pathlib.Path(sys.argv[2])))
