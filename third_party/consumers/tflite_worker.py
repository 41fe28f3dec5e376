"""TensorFlow Lite: `tf.lite.TFLiteConverter.from_saved_model`, and the interpreter of TensorFlow
that runs what it makes.
"""

import collections

import common
import numpy as np
import tensorflow as tf
from savedmodel_compat_workers import protocol
from tensorflow.lite.python.convert import ConverterError

Model = collections.namedtuple("Model", ["interpreter", "signatures"])


def convert(directory, tags):
    """The model as a .tflite file with all its signatures, of the ops of TensorFlow Lite alone.

    Raises ConverterError.
    """
    return tf.lite.TFLiteConverter.from_saved_model(directory, tags=set(tags)).convert()


class TFLiteWorker(protocol.Worker):
    """``Interpreter`` is made of the bytes of a .tflite file; the converter's own error is a
    refusal.
    """

    name = "tflite"
    capabilities = ("tags",)
    refusals = (NotImplementedError, ConverterError)
    Interpreter = tf.lite.Interpreter
    version = tf.__version__

    def versions(self):
        return {**super().versions(), "tensorflow": tf.__version__, self.name: self.version}

    def load(self, directory, tags):
        interpreter = self.Interpreter(model_content=convert(directory, tags))
        return Model(interpreter, common.signatures(directory, tags))

    def signatures(self, model):
        out = {}
        for key in model.interpreter.get_signature_list():
            runner = model.interpreter.get_signature_runner(key)
            out[key] = {
                "inputs": _described(runner.get_input_details()),
                "outputs": _described(runner.get_output_details()),
            }
        return out

    def call_signature(self, model, key, inputs):
        _, outputs = common.fitting(model.signatures, key, inputs, complete=False)
        given = {name: taken(tensor) for name, tensor in inputs.items()}
        return common.named(model.interpreter.get_signature_runner(key)(**given), outputs)


def taken(tensor):
    """An input as the interpreter takes it, which of an array of shape [] takes the bytes: those of
    an object are its address.
    """
    array = common.to_numpy(tensor)
    if tensor.dtype != "string" or array.shape:
        return array
    if not array.item():
        raise NotImplementedError(
            "the interpreter takes no empty string of shape []"
        )  # NumPy makes one of a byte
    return np.array(array.item())


def _described(details):
    """Without the shape where it is []: an unknown rank looks the same."""
    out = {}
    for name, info in details.items():
        shape = [int(size) for size in info["shape_signature"]]
        out[name] = {
            "dtype": common.dtype_name(info["dtype"]),
            **({"shape": shape} if shape else {}),
        }
    return out


if __name__ == "__main__":
    protocol.serve(TFLiteWorker)
