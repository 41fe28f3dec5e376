"""TensorFlow Hub: `hub.load`, and `hub.KerasLayer` of what it returned for each signature."""

import collections
import functools

import common
import tensorflow as tf
import tensorflow_hub
from savedmodel_compat_workers import nests, protocol, tf2_worker

Model = collections.namedtuple("Model", ["root", "directory", "tags", "signatures", "layers"])


class HubWorker(protocol.Worker):
    """Signatures are asked through the layer, functions are called on the loaded module."""

    name = "hub"
    capabilities = ("functions", "tags")
    refusals = (NotImplementedError, tf.errors.UnimplementedError)

    def versions(self):
        return dict(super().versions(), hub=tensorflow_hub.__version__, tensorflow=tf.__version__)

    def load(self, directory, tags):
        return Model(
            tensorflow_hub.load(directory, tags=tags),
            directory,
            tags,
            common.signatures(directory, tags),
            {},
        )

    def signatures(self, model):
        return tf2_worker.describe_all(tf, model.root.signatures)

    def call_signature(self, model, key, inputs):
        _, outputs = common.fitting(model.signatures, key, inputs, complete=False)
        if key not in model.layers:
            # It accepts an object that is not callable only by its path, and loads it again:
            # signatures then do not share state.
            handle, tags = (
                (model.root, None) if callable(model.root) else (model.directory, model.tags)
            )
            model.layers[key] = tensorflow_hub.KerasLayer(
                handle, tags=tags, signature=key, signature_outputs_as_dict=True
            )
        function = model.root.signatures[key]
        given = {
            tf2_worker.keyword(function, name): nests.to_tf(tf, tensor)
            for name, tensor in inputs.items()
        }
        return common.named(
            model.layers[key](given), outputs, functools.partial(nests.flatten_output, tf)
        )

    def call_function(self, model, path, args, kwargs, inputs):
        return nests.call_function(tf, model.root, path, args, kwargs, inputs)


if __name__ == "__main__":
    protocol.serve(HubWorker)
