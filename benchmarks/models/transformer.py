"""A transformer encoder of 12 layers, some 42 million weights, as Keras 3 exports it."""

import sys

import keras
import tensorflow as tf

LAYERS, WIDTH, HEADS, WORDS, LENGTH = 12, 512, 8, 8192, 128


def model():
    tokens = keras.Input([LENGTH], dtype="int32", name="tokens")
    x = keras.layers.Embedding(WORDS, WIDTH)(tokens)
    for _ in range(LAYERS):
        y = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(y, y)
        y = keras.layers.LayerNormalization()(x)
        y = keras.layers.Dense(4 * WIDTH, activation="gelu")(y)
        x = x + keras.layers.Dense(WIDTH)(keras.layers.Dropout(0.1)(y))
    return keras.Model(tokens, keras.layers.Dense(WORDS)(keras.layers.LayerNormalization()(x)))


def build():
    made = model()
    specs = [tf.TensorSpec([None, LENGTH], tf.int32, name="tokens")]
    made.serve = tf.function(lambda tokens: made(tokens, training=False), input_signature=specs)
    return made, {"serving_default": made.serve}


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    model().export(sys.argv[1], verbose=False)
