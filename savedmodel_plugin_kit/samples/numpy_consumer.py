"""A consumer in a hundred lines: SavedModels of a dozen ops, evaluated with NumPy.

It needs no TensorFlow.

    savedmodel-compat plugin-check "python numpy_consumer.py"
    savedmodel-compat matrix run --out out --consumer numpy_sample="python numpy_consumer.py" --case
    half_plus_two

As an entry point the class itself is named: ``numpy_sample = "numpy_consumer:NumpyWorker"``
(docs/exporters/plugins.md).
"""

import numpy as np

from compat_matrix.workers import protocol
from reference_impl.format.bundle import reader as bundle
from reference_impl.format.container import layout
from reference_impl.format.values import tensor_proto
from reference_impl.views.signatures import signature_spec
from savedmodel_common import tensors

CALCULATED = (
    "fiuc"  # kinds of numeric NumPy dtypes; other dtypes are passed through, not calculated with
)
OPS = {
    "Add": lambda node, a, b: a + b,
    "AddV2": lambda node, a, b: a + b,
    "BiasAdd": lambda node, a, b: a + b,
    "Identity": lambda node, a: a,
    "MatMul": lambda node, a, b: (
        (a.T if node.attr["transpose_a"].b else a) @ (b.T if node.attr["transpose_b"].b else b)
    ),
    "Mul": lambda node, a, b: a * b,
    "Neg": lambda node, a: -a,
    "Relu": lambda node, a: np.maximum(a, 0),
}


class Model:
    """A MetaGraph: its nodes by name, its signatures, and the values of its variables by name."""

    def __init__(self, directory, tags):
        found = layout.read(directory)
        self.graph = found.meta_graph(tags)
        self.nodes = {node.name: node for node in self.graph.graph_def.node}
        self.signatures = {
            key: one
            for key, one in self.graph.signature_def.items()
            if not key.startswith("__saved_model")
        }
        self.values = {}
        wanted = [
            node.name for node in self.nodes.values() if node.op in ("VariableV2", "Variable")
        ]
        if wanted:
            with bundle.BundleReader(found.checkpoint_prefix) as reader:
                self.values = {name: reader.read(name) for name in wanted}

    def evaluate(self, name, known):
        """Return the value of a tensor ``node:0``; ``known`` holds the fed and already computed
        tensors.
        """
        node_name, _, index = name.lstrip("^").partition(":")
        if node_name not in known:
            node = self.nodes[node_name]
            if node.op == "Const":
                known[node_name] = tensor_proto.decode(node.attr["value"].tensor)
            elif node_name in self.values:
                known[node_name] = self.values[node_name]
            elif node.op in OPS and index in ("", "0"):
                inputs = [
                    self.evaluate(source, known)
                    for source in node.input
                    if not source.startswith("^")
                ]
                if node.op != "Identity" and any(
                    value.dtype.kind not in CALCULATED for value in inputs
                ):
                    raise NotImplementedError(f"{node.op} of {inputs[0].dtype}")
                known[node_name] = np.asarray(OPS[node.op](node, *inputs))
            else:  # answered with `rejected`: a clean refusal, not a failure
                raise NotImplementedError(f"op {node.op}")
        return known[node_name]


class NumpyWorker(protocol.Worker):
    """The requests of the protocol that this consumer handles; all others are answered with
    `unsupported`.
    """

    name = "numpy_sample"
    capabilities = ("fetch", "tags")

    def versions(self):
        return dict(super().versions(), numpy_sample="1.0")

    def load(self, directory, tags):
        return Model(directory, tags)

    def signatures(self, model):
        return {
            key: one for key, one in signature_spec(model.graph).items() if key in model.signatures
        }

    def call_signature(self, model, key, inputs):
        spec, signature = self.signatures(model)[key], model.signatures[key]
        if set(inputs) != set(spec["inputs"]):
            raise ValueError(
                "{!r} has the inputs {}, given are {}".format(
                    key, sorted(spec["inputs"]), sorted(inputs)
                )
            )
        known = {}
        for name, tensor in inputs.items():
            if tensor.dtype != spec["inputs"][name]["dtype"]:
                raise TypeError(
                    "input {!r} is {}, given is {}".format(
                        name, spec["inputs"][name]["dtype"], tensor.dtype
                    )
                )
            known[signature.inputs[name].name.partition(":")[0]] = tensor.array
        out = {}
        for name, info in signature.outputs.items():
            value = model.evaluate(info.name, known)
            out[name] = tensors.from_numpy(value, spec["outputs"][name]["dtype"])
        return out

    def fetch(self, model, names):
        return {name: tensors.from_numpy(model.evaluate(name, {})) for name in names}


if __name__ == "__main__":
    protocol.serve(NumpyWorker)
