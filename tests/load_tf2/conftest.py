"""A model of TensorFlow 2 with something of everything, as `tf.saved_model.save` wrote it."""

from __future__ import annotations

import pytest
from made_models import Pair

import reference_impl


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="session")
def original(tf, tmp_path_factory):
    """A model with nesting, control flow, a table, containers and signatures; and the directory it
    was saved to.
    """
    vocabulary = tmp_path_factory.mktemp("source") / "words.txt"
    vocabulary.write_text("ant\nbee\n")

    class Dense(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")

        @tf.function
        def multiply(self, x):
            return tf.einsum("ij,jk->ik", x, self.w)

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.dense = Dense()
            self.bias = tf.Variable([0.5, 0.25], name="bias")
            self.steps = tf.Variable(0, trainable=False)
            initializer = tf.lookup.TextFileInitializer(
                str(vocabulary),
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            )
            self.words = tf.lookup.StaticHashTable(initializer, -1)
            self.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
            self.parts = [
                self.dense,
                {"bias": self.bias},
                (self.steps, Pair(self.bias, self.dense)),
            ]
            self.alias = self.dense
            self.parent = self

        @tf.function
        def __call__(self, x, training=False, *, scale=1.0):
            y = self.dense.multiply(x) + self.bias
            if training:
                self.steps.assign_add(1)
                return tf.while_loop(
                    lambda i, _: i < 3,
                    lambda i, y: (i + 1, self.dense.multiply(y) * self.bias),
                    (0, y),
                )[1]
            return tf.cond(
                tf.reduce_sum(y) > 0.0,
                lambda: self.dense.multiply(y) * scale + self.bias,
                lambda: y,
            )

        @tf.function
        def nest(self, pair, more):
            return Pair(second=[pair.first + more["b"]], first=(pair.second * more["a"], None))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def look(self, words):
            return self.words.lookup(words)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def count(self, words):
            self.counts.insert(words, self.counts.lookup(words) + 1)
            return self.counts.lookup(words)

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, 2], tf.float32, name="x"),
                tf.TensorSpec([], tf.float32, name="scale"),
            ]
        )
        def serve(self, x, scale):
            y = self(x)
            return {"scaled": y * scale, "plain": y, "also": tf.reduce_sum(y)}

    model = Model()
    model(tf.zeros([1, 2]))
    model(tf.zeros([1, 2]), True)
    model(tf.zeros([1, 2]), scale=3.0)
    model.steps.assign(7)
    model.nest(Pair(1.0, tf.constant(2.0)), {"a": tf.constant(3.0), "b": tf.constant(4.0)})
    model.count(tf.constant(["bee"]))
    directory = tmp_path_factory.mktemp("models") / "first"
    tf.saved_model.save(
        model, str(directory), signatures={"serve": model.serve, "look": model.look}
    )
    moved = directory.with_name("model")
    directory.rename(moved)
    vocabulary.unlink()
    return model, moved


@pytest.fixture
def loaded(original):
    return reference_impl.load(original[1])
