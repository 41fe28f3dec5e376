"""onnxruntime on an ``.onnx`` file."""

import collections

import file_worker
import onnxruntime
from savedmodel_compat_workers import protocol, tensors

DTYPES = {
    "float": "float32", "double": "float64", "float16": "float16", "bfloat16": "bfloat16",
}  # fmt: skip
KEY = "serving_default"  # an ONNX file has one graph, without a name

Model = collections.namedtuple("Model", ["path", "session"])


def dtype_of(type_name):
    """``tensor(float)`` as TensorFlow calls it: ``float32``."""
    inner = type_name.partition("(")[2].rstrip(")")
    return DTYPES.get(inner, inner)


def described(arguments):
    """The dtype and shape of each input or output by name."""
    return {one.name: {"dtype": dtype_of(one.type), "shape": shape_of(one)} for one in arguments}


def shape_of(argument):
    """A shape with -1 for a size that is a name or absent."""
    return [size if isinstance(size, int) else -1 for size in argument.shape]


class ONNXFileWorker(file_worker.FileWorker):
    """The file runs optimised; intermediate values are those of the graph as it is in the file."""

    name = "onnxruntime"

    def versions(self):
        return dict(super().versions(), onnxruntime=onnxruntime.__version__)

    def load(self, directory, tags):
        session = onnxruntime.InferenceSession(directory, providers=["CPUExecutionProvider"])
        return Model(directory, session)

    def signatures(self, model):
        session = model.session
        inputs, outputs = described(session.get_inputs()), described(session.get_outputs())
        return {KEY: {"inputs": inputs, "outputs": outputs}}

    def call_signature(self, model, key, inputs):
        return run(model.session, inputs)

    def intermediate(self, model, key, inputs):
        """The values of all nodes and the initializers, by name."""
        import onnx

        proto = onnx.load(model.path)
        found = {
            one.name: tensors.from_numpy(onnx.numpy_helper.to_array(one))
            for one in proto.graph.initializer
        }
        there = {one.name for one in proto.graph.output}
        for node in proto.graph.node:
            for name in node.output:
                if name and name not in there:
                    proto.graph.output.append(onnx.ValueInfoProto(name=name))
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        found.update(run(session, inputs))
        return found


def run(session, inputs):
    """The outputs of a session that are tensors, by name."""
    names = [one.name for one in session.get_outputs()]
    wanted = {one.name for one in session.get_inputs()}
    fed = {name: file_worker.to_array(one) for name, one in inputs.items() if name in wanted}
    found = {}
    for name, value in zip(names, session.run(names, fed)):
        if hasattr(value, "dtype"):
            found[name] = tensors.from_numpy(value)
    return found


if __name__ == "__main__":
    protocol.serve(ONNXFileWorker)
