"""Keras 2 (tf_keras): `save(save_format="tf")`, which writes the Keras metadata beside the
functions.
"""

import numpy as np
import tensorflow as tf
import tf_keras as keras
from artifacts import FLOATS, KEY, WORDS, Built, Exporter, batches, floats, named, strings
from tf_keras import layers


def seed():
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)


exporter = Exporter(["tf_keras"], seed)


def save(model, path):
    model.save(path, save_format="tf")


def saved(model, *requests, tolerance=FLOATS):
    """``model`` written by its own `save`; it answers itself, in inference mode, by its output
    layers' names.
    """

    def answer(inputs):
        result = model(inputs, training=False)
        return (
            result
            if isinstance(result, dict)
            else dict(zip(model.output_names, tf.nest.flatten(result)))
        )

    answers = {KEY: named(answer)}
    return Built(
        model,
        [(KEY, request) for request in requests],
        answers=answers,
        save=save,
        tolerance=tolerance,
    )


def chain(inputs, *parts):
    return keras.Sequential([inputs, *parts])


def fit(model, inputs, targets):
    """Two deterministic epochs, which make the slots of the optimizer."""
    model.fit(inputs, targets, batch_size=4, epochs=2, verbose=0, shuffle=False)
    return model


@exporter.export
def compiled_adam(work):
    model = chain(
        keras.Input([4], name="x"),
        layers.Dense(8, "relu", kernel_regularizer="l2"),
        layers.Dense(1),
    )
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
    return saved(fit(model, floats(8, 4), floats(8, 1)), *batches("x", 4))


@exporter.export
def legacy_momentum(work):
    """The optimizer of Keras before 2.11: its slots are those of the object graph."""
    model = chain(keras.Input([4], name="x"), layers.Dense(2))
    model.compile(keras.optimizers.legacy.SGD(0.1, momentum=0.9, nesterov=True), "mse")
    return saved(fit(model, floats(8, 4), floats(8, 2)), *batches("x", 4))


@exporter.export
def functional_outputs(work):
    left, right = keras.Input([3], name="left"), keras.Input([5], name="right")
    both = layers.concatenate([layers.Dense(4, "tanh")(left), right])
    outputs = [layers.Dense(1, "sigmoid", name="score")(both), layers.Dense(2, name="hidden")(both)]
    model = keras.Model([left, right], outputs)
    return saved(
        model, *({"left": floats(size, 3), "right": floats(size, 5)} for size in (2, 1, 0))
    )


@exporter.export
def shared_tower(work):
    tower = chain(keras.Input([3]), layers.Dense(4, "relu", activity_regularizer="l1"))
    one, two = keras.Input([3], name="one"), keras.Input([3], name="two")
    model = keras.Model([one, two], layers.Dot(axes=1, name="dot")([tower(one), tower(two)]))
    return saved(model, *({"one": floats(size, 3), "two": floats(size, 3)} for size in (2, 1)))


class Gate(keras.Model):
    def __init__(self):
        super().__init__()
        self.value, self.gate = layers.Dense(3), layers.Dense(3, "sigmoid")

    def call(self, inputs, training=False):
        return {"out": self.value(inputs) * self.gate(inputs), "gate": self.gate(inputs)}


@exporter.export
def subclass(work):
    model = Gate()
    model.compile("sgd", "mse")
    model.predict(floats(2, 4), verbose=0)  # the signature has the shapes that were seen
    return saved(model, *({"input_1": floats(size, 4)} for size in (3, 1)))


@keras.utils.register_keras_serializable("exporters")
class Scale(layers.Layer):
    """A layer of one's own, with a configuration."""

    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def build(self, shape):
        self.offset = self.add_weight("offset", shape[1:], initializer="ones")

    def call(self, inputs):
        self.add_loss(tf.reduce_sum(self.offset) * 0.01)
        return inputs * self.factor + self.offset

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


@exporter.export
def custom_layer(work):
    return saved(
        chain(keras.Input([3], name="x"), Scale(3.0), layers.Dense(2), Scale(0.5)), *batches("x", 3)
    )


@exporter.export
def batch_norm_dropout(work):
    """Besides the signature the function `__call__`, with the training flag it was traced with (no
    dropout at rate 0).
    """
    model = chain(
        keras.Input([3], name="x"),
        layers.Dropout(0.0),
        layers.BatchNormalization(),
        layers.Dense(2),
    )
    model.compile("sgd", "mse")
    built = saved(fit(model, floats(8, 3), floats(8, 2)), *batches("x", 3))
    calls = [("__call__", (floats(4, 3),), {"training": training}) for training in (False, True)]
    return built._replace(requests=[*built.requests, *calls], stateful=True)


@exporter.export
def normalization(work):
    scale = layers.Normalization(axis=-1)
    scale.adapt(np.float32([[1, 200], [2, 300], [4, 500], [9, 100]]))
    return saved(chain(keras.Input([2], name="x"), scale, layers.Dense(2)), *batches("x", 2))


@exporter.export
def string_lookup(work):
    lookup = layers.StringLookup(vocabulary=WORDS, num_oov_indices=2, output_mode="multi_hot")
    model = chain(keras.Input([2], name="words", dtype="string"), lookup, layers.Dense(2))
    given = [
        strings("leaf", "no such word", "", "tree").reshape(2, 2),
        strings("root", "\xe4\xf6").reshape(1, 2),
    ]
    return saved(model, *({"words": words} for words in given))


@exporter.export
def vocabulary_file(work):
    """The words come from a file, an asset of the export, back and forth."""
    path = work / "words.txt"
    path.write_text("\n".join(WORDS) + "\n")
    word = keras.Input([1], name="word", dtype="string")
    number = layers.StringLookup(vocabulary=str(path))(word)
    back = layers.StringLookup(vocabulary=str(path), invert=True)(number)
    model = keras.Model(
        word,
        [
            layers.Lambda(lambda n: n, name="number")(number),
            layers.Lambda(lambda w: w, name="back")(back),
        ],
    )
    return saved(
        model,
        *({"word": words} for words in (strings(["leaf"], ["unheard"], [""]), strings(["root"]))),
    )


@exporter.export
def text_vectorization(work):
    split = layers.TextVectorization(output_mode="int", output_sequence_length=6)
    split.adapt(strings("a tree has a root", "a leaf, a tree"))
    model = chain(
        keras.Input([1], name="text", dtype="string"),
        split,
        layers.Embedding(20, 4, mask_zero=True),
        layers.LSTM(3),
    )
    texts = [
        strings(["Tree, leaf!"], ["the ROOT of a tree is not a leaf of it"]),
        strings(["leaf"]),
    ]
    return saved(model, *({"text": text} for text in texts))


@exporter.export
def tf_idf(work):
    split = layers.TextVectorization(output_mode="tf_idf", ngrams=2)
    split.adapt(strings("a tree has a root", "a leaf, a tree"))
    model = chain(keras.Input([1], name="text", dtype="string"), split)
    return saved(
        model,
        *(
            {"text": text}
            for text in (strings(["a tree"], ["root root unheard"]), strings(["leaf"]))
        ),
    )


@exporter.export
def integers_and_hashes(work):
    ids = keras.Input([2], name="ids", dtype="int64")
    known = layers.IntegerLookup(vocabulary=[10, 20, -30], output_mode="count", name="known")(ids)
    model = keras.Model(ids, [known, layers.Hashing(5, name="hashed")(ids)])
    return saved(model, *({"ids": np.int64(value)} for value in ([[10, -30], [7, 7]], [[20, 20]])))


@exporter.export
def lstm(work):
    model = chain(
        keras.Input([None, 3], name="x"), layers.LSTM(4, return_sequences=True), layers.LSTM(2)
    )
    return saved(model, *({"x": floats(size, steps, 3)} for size, steps in ((2, 5), (1, 1))))


@exporter.export
def bidirectional_gru(work):
    model = chain(
        keras.Input([6, 2], name="x"),
        layers.Masking(),
        layers.Bidirectional(layers.GRU(3, return_sequences=True)),
    )
    given = floats(2, 6, 2)
    given[0, 3:] = 0  # masked
    return saved(model, {"x": given}, {"x": given[:1]})


@exporter.export
def stacked_cells(work):
    cells = [layers.LSTMCell(3), layers.GRUCell(2)]
    return saved(
        chain(keras.Input([4, 2], name="x"), layers.RNN(cells), layers.Dense(1)),
        *batches("x", 4, 2)[:2],
    )


@exporter.export
def convolution(work):
    model = chain(
        keras.Input([8, 8, 2], name="image"),
        layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(max_value=6.0),
        layers.DepthwiseConv2D(2),
        layers.GlobalAveragePooling2D(),
    )
    # Of an empty batch TensorFlow's oneDNN kernel says the wrong shape when it is called eagerly.
    return saved(model, *batches("image", 8, 8, 2)[:2])


if __name__ == "__main__":
    exporter.main()
