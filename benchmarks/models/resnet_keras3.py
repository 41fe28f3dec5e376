"""ResNet50 as Keras 3 exports it."""

import sys

import keras
import tensorflow as tf


def build():
    model = keras.applications.ResNet50(weights=None)
    serve = tf.function(
        lambda x: model(x, training=False),
        input_signature=[tf.TensorSpec([None, 224, 224, 3], name="x")],
    )
    model.serve = serve
    return model, {"serving_default": serve}


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    keras.applications.ResNet50(weights=None).export(sys.argv[1], verbose=False)
