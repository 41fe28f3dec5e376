"""`tf_keras.models.load_model`: Keras 2, which revives the Keras objects of a SavedModel, and loads
others as TensorFlow does.
"""

import collections
import functools

import common
import numpy as np
import tensorflow as tf
import tf_keras
from savedmodel_compat_workers import nests, protocol, tf2_worker

Model = collections.namedtuple("Model", ["root", "directory", "signatures"])
SERVED = "serving_default"  # the signature that stands for the model's own call


class TFKerasWorker(protocol.Worker):
    """A Keras model's serving signature is asked by `predict`, everything else by the attributes of
    what was loaded.
    """

    name = "tf_keras"
    capabilities = ("functions", "variables")
    refusals = (NotImplementedError, tf.errors.UnimplementedError)

    def versions(self):
        return dict(super().versions(), tf_keras=tf_keras.__version__, tensorflow=tf.__version__)

    def load(self, directory, tags):
        # load_model has no argument for tags: it takes the only MetaGraph, and raises where there
        # are several.
        return Model(
            tf_keras.models.load_model(directory), directory, common.signatures(directory, tags)
        )

    def signatures(self, model):
        return tf2_worker.describe_all(tf, model.root.signatures)

    def call_signature(self, model, key, inputs):
        _, outputs = common.fitting(model.signatures, key, inputs, complete=False)
        if key == SERVED and isinstance(model.root, tf_keras.Model):
            result = _predict(model.root, inputs)
        else:
            function = model.root.signatures[key]
            result = function(
                **{
                    tf2_worker.keyword(function, name): nests.to_tf(tf, one)
                    for name, one in inputs.items()
                }
            )
        return common.named(result, outputs, functools.partial(nests.flatten_output, tf))

    def call_function(self, model, path, args, kwargs, inputs):
        return nests.call_function(tf, model.root, path, args, kwargs, inputs)

    def variables(self, model):
        return tf2_worker.variables(tf, model.root, model.directory)


def _predict(model, inputs):
    given = {name: common.to_numpy(tensor) for name, tensor in inputs.items()}
    size = max(np.shape(array)[0] for array in given.values())
    result = model.predict(
        given if len(given) > 1 else next(iter(given.values())), batch_size=max(size, 1), verbose=0
    )
    if isinstance(result, (list, tuple)) and len(result) == len(model.output_names):
        return dict(zip(model.output_names, result))
    return result


if __name__ == "__main__":
    protocol.serve(TFKerasWorker)
