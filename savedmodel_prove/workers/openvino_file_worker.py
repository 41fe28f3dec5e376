"""OpenVINO on an IR: an ``.xml`` file, with its weights in the ``.bin`` file beside it."""

import collections
import contextlib

import file_worker
import numpy as np
import openvino
from savedmodel_compat_workers import protocol, tensors

KEY = "serving_default"  # an IR has one graph, without a name
# Else a CPU with bfloat16 instructions computes float32 models in bfloat16.
CONFIG = {"EXECUTION_MODE_HINT": "ACCURACY"}
NOT_VALUES = ("Parameter", "Result", "Constant")

Model = collections.namedtuple("Model", ["path", "compiled"])


def name_of(port):
    """The shortest of a port's names, which are aliases."""
    return min(port.get_names(), key=lambda name: (len(name), name))


def dtype_of(port):
    """TensorFlow's name of a port's dtype."""
    if port.element_type == openvino.Type.string:
        return "string"
    if port.element_type == openvino.Type.bf16:
        return "bfloat16"
    return np.dtype(port.element_type.to_dtype()).name


def described(port):
    """The dtype and shape of an input; the rank may be unknown."""
    found, shape = {"dtype": dtype_of(port)}, port.get_partial_shape()
    if shape.rank.is_static:
        found["shape"] = [size.get_length() if size.is_static else -1 for size in shape]
    return found


class OpenVINOFileWorker(file_worker.FileWorker):
    """The CPU device, without lower precision."""

    name = "openvino"

    def __init__(self):
        super().__init__()
        self.core = openvino.Core()

    def versions(self):
        return dict(super().versions(), openvino=openvino.__version__.partition("-")[0])

    def load(self, directory, tags):
        with last_line():
            model = self.core.read_model(directory)
            return Model(directory, self.core.compile_model(model, "CPU", CONFIG))

    def signatures(self, model):
        inputs, outputs = model.compiled.inputs, model.compiled.outputs
        return {
            KEY: {
                "inputs": {name_of(port): described(port) for port in inputs},
                "outputs": {name_of(port): {"dtype": dtype_of(port)} for port in outputs},
            }
        }

    def call_signature(self, model, key, inputs):
        request = inferred(model.compiled, inputs)
        return {
            name_of(port): to_tensor(request, port)
            for port in sorted(model.compiled.outputs, key=name_of)
        }

    def intermediate(self, model, key, inputs):
        """The first results of all nodes, by the names of the nodes."""
        whole = self.core.read_model(model.path)
        given = len(whole.outputs)
        nodes = [op for op in whole.get_ordered_ops() if op.get_type_name() not in NOT_VALUES]
        whole.add_outputs([op.output(0) for op in nodes])
        compiled = self.core.compile_model(whole, "CPU", CONFIG)
        request = inferred(compiled, inputs)
        ports = compiled.outputs
        found = {name_of(port): to_tensor(request, port) for port in ports[:given]}
        for op, port in zip(nodes, ports[given:]):
            found.setdefault(op.get_friendly_name(), to_tensor(request, port))
        return found


def inferred(compiled, inputs):
    """A request that was answered."""
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        tensor = inputs.get(name_of(port))
        if tensor is not None:
            request.set_tensor(port, given_tensor(tensor))
    with last_line():
        request.infer()
    return request


@contextlib.contextmanager
def last_line():
    """Raise the last line of an error: its first lines name files of OpenVINO."""
    try:
        yield
    except RuntimeError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise RuntimeError(lines[-1] if lines else "it gives no reason") from error


def given_tensor(tensor):
    """An input as OpenVINO takes it."""
    array = np.ascontiguousarray(tensor.array).reshape(tensor.array.shape)
    if tensor.dtype == "bfloat16":
        return openvino.Tensor(array, openvino.Shape(array.shape), openvino.Type.bf16)
    if tensor.dtype != "string":
        return openvino.Tensor(array)
    text = openvino.Tensor(openvino.Type.string, openvino.Shape(array.shape))
    text.bytes_data = array.astype(bytes)
    return text


def to_tensor(request, port):
    """The value of a port."""
    value = request.get_tensor(port)
    if port.element_type == openvino.Type.string:
        return tensors.from_numpy(value.bytes_data)
    if port.element_type == openvino.Type.bf16:
        return tensors.Tensor("bfloat16", np.array(value.data).view(np.uint16))
    return tensors.from_numpy(np.array(value.data))


if __name__ == "__main__":
    protocol.serve(OpenVINOFileWorker)
