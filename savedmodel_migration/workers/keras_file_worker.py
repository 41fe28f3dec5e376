"""Load `.keras` files in a process that knows nothing of how they were made. Python 3.6 syntax."""

import os
import sys

import keras_asking
from savedmodel_compat_workers import protocol

OURS = ("compat_matrix", "reference_impl", "savedmodel_compat")

IMPORTS = ("tensorflow",)


class KerasFileWorker(protocol.Worker):
    """``file_answers`` only."""

    name = "keras_file"
    capabilities = ("file_answers",)

    def __init__(self):
        super(KerasFileWorker, self).__init__()
        os.environ["KERAS_BACKEND"] = "tensorflow"
        import tensorflow as tf

        self.tf = tf
        loaded = [name for name in OURS if name in sys.modules]
        if loaded:
            raise RuntimeError(
                "{} is imported in a process that must not have it".format(", ".join(loaded))
            )

    def versions(self):
        return dict(super(KerasFileWorker, self).versions(), tensorflow=self.tf.__version__)

    def op_file_answers(self, request):
        """Write what the model of ``file`` answers to ``inputs`` in a graph, as in ``predict``, and
        its weights.

        ``wrapped``: the file holds a layer of `savedmodel_compat`, so this is imported first.
        """
        import keras

        if request["wrapped"]:
            import savedmodel_compat.keras  # noqa: F401  # registers the layers
        custom = keras_asking.custom_objects(request["custom_objects"], request["paths"])
        safe = not (request["wrapped"] or request["trust_lambda"])
        keras_asking.fresh(keras)
        model = keras.saving.load_model(request["file"], custom_objects=custom, safe_mode=safe)
        inputs = keras_asking.inputs_of(self.tf, keras, model, request["inputs"])
        predict = self.tf.function(
            lambda nest: model(nest, training=False), autograph=False
        )  # whose errors quote the code
        keras_asking.save_weights(
            self.tf, model, request["weights"]
        )  # a call changes those of a stateful RNN
        keras_asking.save_answer(self.tf, keras, predict(inputs), request["answers"])
        return {}


def main():
    protocol.serve(KerasFileWorker)


if __name__ == "__main__":
    main()
