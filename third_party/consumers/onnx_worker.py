"""tf2onnx's command on a SavedModel (TensorFlow loads it, and freezes its variables), and
onnxruntime on what it wrote.
"""

import pathlib
import tempfile
from unittest import mock

import common
import numpy as np
import onnxruntime
import tf2onnx.convert
from savedmodel_compat_workers import protocol, tf2_worker

OPSET = "18"  # the newest that tf2onnx writes
# tf2onnx leaves an op that it cannot map as it is, and says so on stderr only
UNKNOWN_OP = "No Op registered for"


class UnmappedOp(NotImplementedError):
    """An op of the model is none of ONNX's, and tf2onnx has nothing to put in its place."""


class ONNXWorker(common.Converting):
    """A signature becomes an InferenceSession."""

    name = "onnx"
    refusals = (NotImplementedError, onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented)

    def versions(self):
        more = {
            "tensorflow": tf2onnx.convert.tf.__version__,
            "onnxruntime": onnxruntime.__version__,
        }
        return {**super().versions(), self.name: tf2onnx.__version__, **more}

    def convert(self, model, key):
        if len(model.tags) > 1:
            raise NotImplementedError(f"tf2onnx takes one tag, not {model.tags}")
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder, "model.onnx"))
            asked = [
                "--saved-model",
                model.directory,
                "--tag",
                "".join(model.tags),
                "--signature_def",
                key,
            ]
            with mock.patch("sys.argv", ["tf2onnx", *asked, "--opset", OPSET, "--output", path]):
                tf2onnx.convert.main()
            return started(path)

    def call_signature(self, model, key, inputs):
        _, outputs = common.fitting(model.signatures, key, inputs)
        session = self.converted(model, key)
        names = [one.name for one in session.get_outputs()]
        fed = {}
        for name, tensor in inputs.items():
            fed[tf2_worker.identifier(name)] = fed[name] = given(tensor)
        # An input that nothing depends on is not there.
        values = session.run(
            names, {one.name: fed[one.name] for one in session.get_inputs() if one.name in fed}
        )
        return common.named(dict(zip(names, values)), outputs)


def started(path):
    """An InferenceSession. Raises UnmappedOp."""
    try:
        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception as error:  # the classes of onnxruntime have no common base
        if UNKNOWN_OP in str(error):
            raise UnmappedOp(str(error)) from error
        raise


def given(tensor):
    """An input as onnxruntime takes it: strings are text.

    Raises NotImplementedError for a dtype that ONNX does not have.
    """
    if tensor.dtype.startswith(("qint", "quint")):
        raise NotImplementedError(f"ONNX has no dtype {tensor.dtype}")
    array = common.to_numpy(tensor)
    return np.vectorize(bytes.decode, otypes=[object])(array) if tensor.dtype == "string" else array


if __name__ == "__main__":
    protocol.serve(ONNXWorker)
