"""Models of about 2 MB, two of each kind: the second is another export in which one op and one
weight are others.

``python small.py FOLDER`` writes FOLDER/KIND/1 and FOLDER/KIND/2.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# kind -> title
KINDS = {
    "functions": "330 traced functions",
    "graph": "graph of TF 1.x style, optimizer left in",
    "weights": "weights",
    "keras": "Keras 3 export",
}


def functions(directory: str, last: str) -> None:
    """Many small functions, each with a branch of its own."""
    import tensorflow as tf

    def block(number: int) -> tf.Module:
        made = tf.Module()
        made.w = tf.Variable(tf.ones([4, 4]), name=f"w{number}")
        made.b = tf.Variable(
            tf.zeros([4]) + float(len(last)), name=f"b{number}", trainable=number % 2 == 0
        )

        def call(x: Any) -> dict[str, Any]:
            y = tf.nn.relu(tf.matmul(x, made.w) + made.b)
            y = tf.cond(
                tf.reduce_sum(y) > 0,
                lambda: tf.sin(y),
                lambda: getattr(tf, last if number == 7 else "cos")(y),
            )
            return {"y": tf.reduce_mean(y, axis=-1, keepdims=True), "z": tf.concat([x, y], -1)}

        made.call = tf.function(call, input_signature=[tf.TensorSpec([None, 4], name="x")])
        return made

    root = tf.Module()
    root.blocks = [block(number) for number in range(330)]
    tf.saved_model.save(
        root, directory, {"first": root.blocks[0].call, "last": root.blocks[-1].call}
    )


def graph(directory: str, last: str) -> None:
    """One graph of TF 1.x style: layers, gradients, an optimizer, summaries left in."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        y = x = v1.placeholder("float32", [None, 8], name="x")
        for number in range(115):
            with v1.variable_scope(f"layer_{number}"):
                w = v1.get_variable(
                    "kernel",
                    [8, 8],
                    initializer=v1.initializers.random_normal(stddev=0.1, seed=number),
                )
                b = v1.get_variable(
                    "bias", [8], initializer=v1.initializers.constant(float(len(last)))
                )
                y = (getattr(tf, last) if number == 114 else tf.nn.relu)(tf.matmul(y, w) + b) + y
                v1.summary.histogram("kernel", w)
        v1.train.AdamOptimizer().minimize(tf.reduce_mean(tf.square(y)))
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, directory, {"x": x}, {"y": y})


def weights(directory: str, last: str) -> None:
    """Forty tensors of 12,288 values, and a line of code."""
    import tensorflow as tf

    root = tf.Module()
    root.weights = [
        tf.Variable(tf.random.stateless_uniform([96, 128], [number, 1])) for number in range(40)
    ]
    root.weights[3].assign_add(tf.eye(96, 128) * float(len(last)))

    def call(x: Any) -> Any:
        return getattr(tf, last)(tf.matmul(x, sum(root.weights[1:], root.weights[0])))

    root.call = tf.function(call, input_signature=[tf.TensorSpec([None, 96])])
    tf.saved_model.save(root, directory, {"serving_default": root.call})


def keras(directory: str, last: str) -> None:
    """A small network for images: convolutions, normalisation, residuals."""
    import keras

    keras.utils.set_random_seed(len(last))
    x = image = keras.Input((32, 32, 3))
    for filters in (16, 16, 24, 24, 32, 32, 48, 48):
        y = keras.layers.Conv2D(filters, 3, padding="same")(x)
        y = keras.layers.Activation("relu")(keras.layers.BatchNormalization()(y))
        x = keras.layers.Add()([x, y]) if x.shape[-1] == filters else y
    x = keras.layers.Dense(128, activation=last)(keras.layers.GlobalAveragePooling2D()(x))
    model = keras.Model(image, keras.layers.Dense(1000, activation="softmax")(x))
    model.export(directory, verbose=False)


if __name__ == "__main__":
    for kind in KINDS:
        for number, op in ((1, "tanh"), (2, "sigmoid")):
            globals()[kind](str(Path(sys.argv[1]) / kind / str(number)), op)
