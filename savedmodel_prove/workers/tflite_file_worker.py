"""LiteRT on a ``.tflite`` file."""

import collections
import importlib.metadata

import file_worker
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from savedmodel_compat_workers import protocol, tensors

KEY = "serving_default"  # of a file without signatures

Model = collections.namedtuple("Model", ["path", "interpreter"])


def described(details):
    """The dtype of each input or output by name."""
    return {name: {"dtype": dtype_name(info["dtype"])} for name, info in details.items()}


def dtype_name(dtype):
    """TensorFlow's name of a NumPy dtype."""
    kind = np.dtype(dtype)
    return "string" if kind.kind in "SUO" else kind.name


def by_name(details):
    """The details of inputs or outputs by the name of the tensor."""
    return {info["name"]: info for info in details}


class TFLiteFileWorker(file_worker.FileWorker):
    """A file without signatures has one, whose names are those of the tensors."""

    name = "litert"

    def versions(self):
        return dict(super().versions(), litert=importlib.metadata.version("ai-edge-litert"))

    def load(self, directory, tags):
        return Model(directory, Interpreter(model_path=directory))

    def signatures(self, model):
        interpreter, out = model.interpreter, {}
        for key in interpreter.get_signature_list():
            runner = interpreter.get_signature_runner(key)
            inputs, outputs = runner.get_input_details(), runner.get_output_details()
            out[key] = {"inputs": described(inputs), "outputs": described(outputs)}
        if out:
            return out
        inputs = by_name(interpreter.get_input_details())
        outputs = by_name(interpreter.get_output_details())
        return {KEY: {"inputs": described(inputs), "outputs": described(outputs)}}

    def call_signature(self, model, key, inputs):
        given = {name: file_worker.to_array(tensor) for name, tensor in inputs.items()}
        if model.interpreter.get_signature_list():
            values = model.interpreter.get_signature_runner(key)(**given)
        else:
            values = self._invoked(model.interpreter, given)
        return {name: tensors.from_numpy(value) for name, value in sorted(values.items())}

    def intermediate(self, model, key, inputs):
        """The results of ops by the name of the op that was fused last, e.g. ``dense/Relu``."""
        interpreter = Interpreter(
            model_path=model.path, experimental_preserve_all_tensors=True, num_threads=1
        )
        given = {name: file_worker.to_array(tensor) for name, tensor in inputs.items()}
        if interpreter.get_signature_list():
            found = dict(interpreter.get_signature_runner(key)(**given))
        else:
            found = self._invoked(interpreter, given)
        names = {info["index"]: info["name"] for info in interpreter.get_tensor_details()}
        for op in interpreter._get_ops_details():
            for index in op["outputs"]:
                if index in names:
                    name = names[index].partition(";")[0]
                    found.setdefault(name, interpreter.get_tensor(index))
        return {name: tensors.from_numpy(value) for name, value in sorted(found.items())}

    def _invoked(self, interpreter, given):
        details = by_name(interpreter.get_input_details())
        for name, value in given.items():
            interpreter.resize_tensor_input(details[name]["index"], value.shape)
        interpreter.allocate_tensors()
        for name, value in given.items():
            interpreter.set_tensor(details[name]["index"], value)
        interpreter.invoke()
        outputs = by_name(interpreter.get_output_details())
        return {name: interpreter.get_tensor(info["index"]) for name, info in outputs.items()}


if __name__ == "__main__":
    protocol.serve(TFLiteFileWorker)
