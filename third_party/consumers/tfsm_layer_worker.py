"""`keras.layers.TFSMLayer`: a layer to each endpoint, called as layers are called.

Each layer loads the model for itself: what two endpoints share in the file, they do not share here.
"""

import collections
import functools

import common
import keras
import tensorflow as tf
from savedmodel_compat_workers import nests, protocol, signature_wire

Model = collections.namedtuple("Model", ["directory", "signatures", "layers"])


class TFSMLayerWorker(protocol.Worker):
    """With what the layer takes by default: it has no argument for tags, and casts floats to its
    dtype as all layers do.
    """

    name = "tfsm_layer"
    refusals = (NotImplementedError, tf.errors.UnimplementedError)

    def versions(self):
        return dict(super().versions(), tfsm_layer=keras.__version__, tensorflow=tf.__version__)

    def load(self, directory, tags):
        model = Model(directory, common.signatures(directory, tags), {})
        self._layer(model, min(model.signatures, default="__call__"))
        return model

    @staticmethod
    def _layer(model, key):
        if key not in model.layers:
            model.layers[key] = keras.layers.TFSMLayer(model.directory, call_endpoint=key)
        return model.layers[key]

    def signatures(self, model):
        return signature_wire.describe(model.signatures)

    def call_signature(self, model, key, inputs):
        _, outputs = common.fitting(model.signatures, key, inputs, complete=False)
        given = {name: nests.to_tf(tf, tensor) for name, tensor in inputs.items()}
        layer = self._layer(model, key)
        # One tensor is what the layer is made for; several have to be one argument.
        try:
            result = layer(next(iter(given.values())) if len(given) == 1 else given)
        except TypeError as error:
            if len(given) == 1:
                raise
            raise NotImplementedError(
                f"TFSMLayer calls a signature with one tensor, {key!r} takes {sorted(given)}:"
                f" {error}"
            )
        return common.named(result, outputs, functools.partial(nests.flatten_output, tf))


if __name__ == "__main__":
    protocol.serve(TFSMLayerWorker)
