"""OpenVINO's TensorFlow frontend, with its result run on the CPU device.

TensorFlow is not used here.

The frontend's `load` and `convert` are what `openvino.convert_model(directory)` does, and take the
tags too. They convert one signature: ``serving_default``, or the only one there is. Of several
others they make one model, whose names are not theirs.
"""

import collections

import common
import numpy as np
import openvino
from openvino import frontend
from savedmodel_compat_workers import protocol, signature_wire, tensors

DEFAULT = "serving_default"
CONFIG = {
    "EXECUTION_MODE_HINT": "ACCURACY"
}  # else a CPU with bfloat16 instructions calculates float32 models in bfloat16

Model = collections.namedtuple(
    "Model", ["signatures", "key", "compiled"]
)  # the key: of the signature that is converted


class OpenVINOWorker(protocol.Worker):
    """A model is compiled when it is loaded."""

    name = "openvino"
    capabilities = ("tags",)
    refusals = (NotImplementedError, frontend.OpConversionFailure, frontend.NotImplementedFailure)

    def __init__(self):
        super().__init__()
        self.core = openvino.Core()
        self.tensorflow = frontend.FrontEndManager().load_by_framework("tf")

    def versions(self):
        return {**super().versions(), self.name: openvino.__version__.partition("-")[0]}

    def load(self, directory, tags):
        converted = self.tensorflow.convert(self.tensorflow.load([directory, ",".join(tags)]))
        signatures = common.signatures(directory, tags)
        key = DEFAULT if DEFAULT in signatures or len(signatures) != 1 else next(iter(signatures))
        return Model(signatures, key, self.core.compile_model(converted, "CPU", CONFIG))

    def signatures(self, model):
        return signature_wire.describe(
            {key: one for key, one in model.signatures.items() if key == model.key}
        )

    def call_signature(self, model, key, inputs):
        entries, outputs = common.fitting(model.signatures, key, inputs, complete=False)
        if key != model.key:
            raise NotImplementedError(
                f"OpenVINO converts one signature, {model.key!r}: {key!r} is not in its model"
            )
        request = model.compiled.create_infer_request()
        for entry in entries:
            port = find(model.compiled.inputs, entry)
            if (
                port is not None
            ):  # one with a default is a constant, one that nothing depends on may be gone
                request.set_tensor(port, given(inputs[entry.name]))
        request.infer()
        return protocol.named(
            (entry.name, answer(request, find(model.compiled.outputs, entry), entry))
            for entry in outputs
        )


def find(ports, entry):
    """The port that has the name of an entry, or None."""
    return next((port for port in ports if entry.name in port.get_names()), None)


def given(tensor):
    """An input as OpenVINO takes it, which knows neither NumPy's objects nor its extensions."""
    array = np.ascontiguousarray(tensor.array).reshape(tensor.array.shape)
    if tensor.dtype == "bfloat16":
        return openvino.Tensor(array, openvino.Shape(array.shape), openvino.Type.bf16)
    if tensor.dtype != "string":
        return openvino.Tensor(array)
    text = openvino.Tensor(openvino.Type.string, openvino.Shape(array.shape))
    text.bytes_data = array.astype(bytes)
    return text


def answer(request, port, entry):
    """Return the output of a port, in the port's dtype.

    Raises KeyError when there is no such port.
    """
    if port is None:
        raise KeyError(f"the converted model has no output {entry.name!r}")
    tensor = request.get_tensor(port)
    if port.element_type == openvino.Type.bf16:
        return tensors.Tensor("bfloat16", np.array(tensor.data).view(np.uint16))
    return tensors.from_numpy(
        tensor.bytes_data if port.element_type == openvino.Type.string else np.array(tensor.data)
    )


if __name__ == "__main__":
    protocol.serve(OpenVINOWorker)
