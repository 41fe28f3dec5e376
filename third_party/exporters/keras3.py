"""Keras 3: `model.export`, `ExportArchive`, and models inside a tf.Module."""

import itertools
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from artifacts import (
    FLOATS,
    KEY,
    WORDS,
    Built,
    Exporter,
    batches,
    floats,
    named,
    strings,
)  # noqa: E402
from keras import layers  # noqa: E402


def seed():
    keras.backend.clear_session()
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(7)


exporter = Exporter(["keras"], seed)


def exported(model, *requests, tolerance=FLOATS):
    """``model`` written by `model.export`; it answers itself, in inference mode.

    ``requests``: the inputs of each.
    """
    return Built(
        model,
        [(KEY, request) for request in requests],
        answers={KEY: named(lambda inputs: model(inputs, training=False))},
        save=lambda root, path: root.export(path, verbose=False),
        tolerance=tolerance,
    )


def chain(inputs, *parts):
    return keras.Sequential([inputs, *parts])


@exporter.export
def sequential(work):
    return exported(
        chain(keras.Input([4], name="x"), layers.Dense(8, "relu"), layers.Dense(3, "softmax")),
        *batches("x", 4),
    )


@exporter.export
def functional_named(work):
    left, right = keras.Input([3], name="left"), keras.Input([5], name="right")
    both = layers.concatenate([layers.Dense(4, "tanh")(left), right])
    model = keras.Model(
        {"left": left, "right": right},
        {"score": layers.Dense(1, "sigmoid")(both), "hidden": layers.Dense(2)(both)},
    )
    return exported(
        model, *({"left": floats(size, 3), "right": floats(size, 5)} for size in (2, 1, 0))
    )


@exporter.export
def shared_layer(work):
    tower = layers.Dense(4, "relu", name="tower")
    one, two = keras.Input([3], name="one"), keras.Input([3], name="two")
    model = keras.Model({"one": one, "two": two}, layers.Dot(axes=1)([tower(one), tower(two)]))
    return exported(model, *({"one": floats(size, 3), "two": floats(size, 3)} for size in (2, 1)))


class Gate(keras.Model):
    def __init__(self):
        super().__init__()
        self.value, self.gate = layers.Dense(3), layers.Dense(3, "sigmoid")

    def call(self, inputs, training=False):
        return {"out": self.value(inputs) * self.gate(inputs), "gate": self.gate(inputs)}


@exporter.export
def subclass(work):
    model = Gate()
    model(floats(1, 4))  # builds it: the signature has the shape that was seen
    return exported(model, *({"args_0": floats(size, 4)} for size in (3, 1)))  # Keras's name for it


@exporter.export
def normalization(work):
    scale = layers.Normalization(axis=-1)
    scale.adapt(np.float32([[1, 200], [2, 300], [4, 500], [9, 100]]))
    return exported(chain(keras.Input([2], name="x"), scale, layers.Dense(2)), *batches("x", 2))


@exporter.export
def string_lookup(work):
    lookup = layers.StringLookup(vocabulary=WORDS, num_oov_indices=2, output_mode="one_hot")
    model = chain(keras.Input([], name="word", dtype="string"), lookup, layers.Dense(2))
    given = [strings("leaf", "no such word", ""), strings("tree"), strings("\xe4\xf6", "root")]
    return exported(model, *({"word": words} for words in given))


@exporter.export
def text_vectorization(work):
    split = layers.TextVectorization(output_sequence_length=6, vocabulary=WORDS)
    model = chain(
        keras.Input([1], name="text", dtype="string"),
        split,
        layers.Embedding(5, 4),
        layers.GlobalAveragePooling1D(),
    )
    texts = [
        strings("Tree, leaf!", "", "the ROOT of a tree is not a leaf of it").reshape(-1, 1),
        strings("leaf").reshape(1, 1),
    ]
    return exported(model, *({"text": text} for text in texts))


@exporter.export
def integer_lookup(work):
    lookup = layers.IntegerLookup(vocabulary=[10, 20, -30], output_mode="multi_hot")
    model = chain(keras.Input([2], name="id", dtype="int64"), lookup, layers.Dense(2))
    return exported(model, *({"id": np.int64(ids)} for ids in ([[10, -30], [7, 7]], [[20, 20]])))


@exporter.export
def hashed_and_crossed(work):
    word, number = (
        keras.Input([1], name="word", dtype="string"),
        keras.Input([1], name="number", dtype="int64"),
    )
    cross = layers.HashedCrossing(num_bins=8, output_mode="one_hot")([word, number])
    model = keras.Model(
        {"word": word, "number": number}, {"bin": layers.Hashing(num_bins=5)(word), "cross": cross}
    )
    given = {
        "word": strings("leaf", "", "no such word").reshape(-1, 1),
        "number": np.int64([[1], [-1], [2**40]]),
    }
    return exported(model, given, {name: value[:1] for name, value in given.items()})


@exporter.export
def discretization(work):
    edges = layers.Discretization(bin_boundaries=[-1.0, 0.0, 2.5])
    model = chain(
        keras.Input([2], name="x"), edges, layers.CategoryEncoding(4, output_mode="count")
    )
    return exported(
        model,
        {"x": np.float32([[-1, 2.5], [-9, 9], [np.inf, -np.inf]])},
        {"x": np.float32([[0, -0.0]])},
    )


@exporter.export
def lstm(work):
    model = chain(
        keras.Input([None, 3], name="x"), layers.LSTM(4, return_sequences=True), layers.LSTM(2)
    )
    return exported(model, *({"x": floats(size, steps, 3)} for size, steps in ((2, 5), (1, 1))))


@exporter.export
def bidirectional_gru(work):
    model = chain(
        keras.Input([6, 2], name="x"), layers.Masking(), layers.Bidirectional(layers.GRU(3))
    )
    given = floats(2, 6, 2)
    given[0, 3:] = 0  # masked
    return exported(model, {"x": given}, {"x": given[:1]})


@exporter.export
def convolution(work):
    model = chain(
        keras.Input([8, 8, 2], name="image"),
        layers.Rescaling(1 / 127.5, offset=-1),
        layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.SeparableConv2D(3, 2),
        layers.MaxPooling2D(),
        layers.Flatten(),
    )
    # Of an empty batch TensorFlow's oneDNN kernel says the wrong shape when it is called eagerly.
    return exported(model, *batches("image", 8, 8, 2)[:2])


@exporter.export
def attention(work):
    tokens = keras.Input([None], name="tokens", dtype="int32")
    vectors = layers.Embedding(12, 8, mask_zero=True)(tokens)
    mixed = layers.LayerNormalization()(vectors + layers.MultiHeadAttention(2, 4)(vectors, vectors))
    model = keras.Model(tokens, layers.GlobalAveragePooling1D()(mixed))
    return exported(
        model, *({"tokens": np.int32(ids)} for ids in ([[1, 2, 3, 0], [11, 0, 0, 0]], [[5]]))
    )


@exporter.export
def quantized_int8(work):
    model = chain(keras.Input([16], name="x"), layers.Dense(8, "relu"), layers.Dense(4))
    model.quantize("int8")
    return exported(model, *batches("x", 16)[:2])  # Keras cannot scale an empty batch


@exporter.export
def mixed_bfloat16(work):
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = chain(
        keras.Input([8], name="x"), layers.Dense(8, "gelu"), layers.Dense(2, dtype="float32")
    )
    reason = "A bfloat16 has 8 bits: what is added in another order differs in the last of them."
    return exported(model, *batches("x", 8), tolerance=(2e-2, 2e-2, reason))


@exporter.export
def archive(work):
    """Three endpoints of one model; `train` runs batch normalisation and dropout (of rate 0) in
    training mode.
    """
    model = chain(
        keras.Input([3], name="x"),
        layers.BatchNormalization(),
        layers.Dropout(0.0),
        layers.Dense(2),
    )
    spec = [tf.TensorSpec([None, 3], tf.float32, "x")]
    endpoints = {
        "serve": lambda x: model(x, training=False),
        "train": lambda x: model(x, training=True),
        "probabilities": lambda x: {"p": tf.nn.softmax(model(x, training=False))},
    }

    def save(root, path):
        writer = keras.export.ExportArchive()
        writer.track(root)
        for name, endpoint in endpoints.items():
            writer.add_endpoint(name, endpoint, input_signature=spec)
        writer.write_out(path, verbose=False)

    pairs = itertools.product(endpoints, (4, 1))
    requests = [(name, {"x": floats(size, 3)}) for name, size in pairs]
    return Built(model, requests, answers=endpoints, save=save, tolerance=FLOATS, stateful=True)


@exporter.export
def stateful_rnn(work):
    """The state of the layer is a variable that each call assigns."""
    model = chain(keras.Input(batch_shape=[2, 3, 2], name="x"), layers.SimpleRNN(3, stateful=True))
    return exported(model, {"x": floats(2, 3, 2)}, {"x": floats(2, 3, 2)})._replace(stateful=True)


@exporter.export
def trained_in_module(work):
    """A compiled and trained model with its optimizer inside a tf.Module, which has functions of
    its own.
    """
    root = tf.Module()
    root.model = chain(
        keras.Input([3], name="x"),
        layers.Dense(4, "relu", kernel_regularizer="l2"),
        layers.Dense(1),
    )
    root.model.compile(keras.optimizers.Adam(0.05), "mse")
    root.model.fit(floats(8, 3), floats(8, 1), batch_size=4, epochs=2, verbose=0, shuffle=False)
    root.scale = tf.Variable(2.0)
    spec = tf.TensorSpec([None, 3], tf.float32, "x")
    root.predict = tf.function(
        lambda x: root.scale * root.model(x, training=False), input_signature=[spec]
    )
    root.loss = tf.function(lambda: tf.add_n(root.model.losses), input_signature=[])
    x = floats(3, 3)
    requests = [
        ("predict", {"x": x}),
        ("predict", {"x": x[:1]}),
        ("predict", (x,), {}),
        ("loss", (), {}),
    ]
    return Built(
        root, requests, signatures={"predict": root.predict, "loss": root.loss}, tolerance=FLOATS
    )


if __name__ == "__main__":
    exporter.main()
