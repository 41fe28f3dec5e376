"""Models of many kinds, for tests that save all of them.

Run as a program, it saves them: `varied_models.py DIRECTORY`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def variables(tf: Any, folder: Path) -> Any:
    root = tf.Module()
    for index, name in enumerate(("zeta", "alpha", "mid", "beta")):
        setattr(root, name, tf.Variable([float(index)], name=name))
    root.nested = {
        "b": [tf.Variable(1), {"x": tf.Variable(b"t")}],
        "a": (tf.Variable(2.0), tf.Module()),
    }
    root.f = tf.function(lambda x, **more: {"s": x + root.zeta, "t": [x * root.alpha, more]})
    root.f(tf.constant(1.0), z=tf.constant(1.0), a=tf.constant(2.0))
    root.f(tf.constant(1.0), q=True)
    return root


def tables(tf: Any, folder: Path) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "words.txt").write_text("ant\nbee\n")
    index = tf.lookup.TextFileIndex
    file = tf.lookup.TextFileInitializer(
        str(folder / "words.txt"), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    root = tf.Module()
    root.words = tf.lookup.StaticHashTable(file, -1)
    root.buckets = tf.lookup.StaticVocabularyTable(file, 3)
    root.memory = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), 0
    )
    root.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    root.counts.insert([str(i) for i in range(50)], tf.range(50, dtype=tf.int64))
    root.dense = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, -1, empty_key=-2, deleted_key=-3
    )
    root.dense.insert(tf.range(20, dtype=tf.int64), tf.range(20, dtype=tf.int64))
    root.asset = tf.saved_model.Asset(str(folder / "words.txt"))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(word: Any) -> Any:
        return (
            root.words.lookup(word),
            root.buckets.lookup(word),
            root.memory.lookup(word),
            root.counts.lookup(word),
        )

    root.look = look
    return root


def gradients(tf: Any, folder: Path) -> Any:
    @tf.custom_gradient
    def scaled(x: Any) -> Any:
        return x * 2.0, lambda dy: dy * 3.0

    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(scaled(x * root.v))
        root.v.assign_sub(tape.gradient(loss, root.v))
        return tf.cond(
            loss > 0.0,
            lambda: tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 2.0), (0, loss))[1],
            lambda: loss,
        )

    root.step = step
    return root


def v1_optimizer(tf: Any, folder: Path) -> Any:
    root = tf.Module()
    root.v = tf.Variable([1.0])
    root.w = tf.Variable([2.0])
    root.optimizer = tf.compat.v1.train.AdamOptimizer(0.5)
    root.optimizer.apply_gradients([(tf.constant([2.0]), root.v), (tf.constant([1.0]), root.w)])
    return root


def randomness(tf: Any, folder: Path) -> Any:
    root = tf.Module()
    root.generator = tf.random.Generator.from_seed(7)
    root.draw = tf.function(lambda: root.generator.normal([2]), input_signature=[])
    root.step = tf.train.Checkpoint(count=tf.Variable(3, dtype=tf.int64), parts=[tf.Variable(1.0)])
    return root


def signatures(tf: Any, folder: Path) -> Any:
    root = tf.Module()

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32, "z"),
            tf.TensorSpec([None], tf.float32, "a"),
        ]
    )
    def f(first: Any, second: Any) -> Any:
        return {"q": first + second, "b": first * second * root.constant[1]}

    root.f, root.constant = f, tf.range(40.0)  # too large for the function itself: it is captured
    return root


def keras_model(tf: Any, folder: Path) -> Any:
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input([4]),
            layers.Dense(3, activation="relu"),
            layers.BatchNormalization(),
            layers.Dense(2),
        ]
    )
    model.compile("adam", "mse")
    model.fit(tf.ones([8, 4]), tf.ones([8, 2]), verbose=0)
    return model


def keras_in_module(tf: Any, folder: Path) -> Any:
    tf.keras.utils.set_random_seed(4)
    root = tf.Module()
    root.layer = tf.keras.layers.LSTM(3)
    root.f = tf.function(
        lambda x: root.layer(x), input_signature=[tf.TensorSpec([None, 2, 2], tf.float32)]
    )
    return root


MODELS = [
    variables,
    tables,
    gradients,
    v1_optimizer,
    randomness,
    signatures,
    keras_model,
    keras_in_module,
]


def main() -> None:
    import tensorflow as tf

    import reference_impl

    out = Path(sys.argv[1])
    for build in MODELS:
        model = build(tf, out / "source" / build.__name__)
        options = {"signatures": {"z": model.f, "a": model.f}} if build is signatures else {}
        for name in ("once", "twice"):
            reference_impl.save(model, out / name / build.__name__, **options)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
