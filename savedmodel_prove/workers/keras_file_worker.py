"""Keras 3 on a ``.keras`` file, with the backend TensorFlow. Code inside the file is refused."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import file_worker
import keras
import numpy as np
from savedmodel_compat_workers import protocol, tensors

KEY = "serving_default"


class KerasFileWorker(file_worker.FileWorker):
    """Inputs and outputs have the names of the model; intermediate values those of its layers."""

    name = "keras"

    def versions(self):
        return dict(super().versions(), keras=keras.__version__)

    def load(self, directory, tags):
        return keras.saving.load_model(directory, compile=False, safe_mode=True)

    def signatures(self, model):
        inputs = {one.name: {"dtype": str(one.dtype)} for one in model.inputs}
        outputs = dict.fromkeys(model.output_names, {"dtype": ""})
        return {KEY: {"inputs": inputs, "outputs": outputs}}

    def call_signature(self, model, key, inputs):
        given = [file_worker.to_array(inputs[one.name]) for one in model.inputs]
        values = model(given if len(given) > 1 else given[0], training=False)
        if isinstance(values, dict):
            named = values
        else:
            listed = values if isinstance(values, (list, tuple)) else [values]
            named = dict(zip(model.output_names, listed))
        return {name: tensors.from_numpy(np.asarray(one)) for name, one in sorted(named.items())}


if __name__ == "__main__":
    protocol.serve(KerasFileWorker)
