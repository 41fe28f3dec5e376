"""A program that writes SavedModels with the installed TensorFlow, for tests that need several
exports of one model.

``python export_models.py FOLDER [quick]``: `first`, and unless quick `again` (the same objects),
`rebuilt` (the same program once more), `loaded_2` … `loaded_4` (each loaded from the one before and
saved), `session_1`, `session_2`, `stripped` (TF 1.x builder, one graph exported three times).
"""

import sys
import tempfile
from pathlib import Path


def build(tf, work):
    """A module with traces, aliases, a cycle, tables, an asset, control flow, a custom gradient,
    ragged and sparse arguments.
    """
    vocabulary = Path(work) / "vocabulary.txt"
    vocabulary.write_text("a\nb\nc\n")

    class Child(tf.Module):
        def __init__(self, units):
            super().__init__()
            self.w = tf.Variable(tf.fill([3, units], float(units)), name="w")
            self.frozen = tf.Variable([1.0, float(units)], trainable=False, name="frozen")

        @tf.function
        def __call__(self, x, training=False):
            y = tf.matmul(x, self.w)
            return tf.nn.dropout(y, 0.5, seed=3) if training else y

    class Root(tf.Module):
        def __init__(self):
            super().__init__()
            self.child = Child(2)
            self.alias = self.child
            self.loop = {"me": self}
            self.layers = [Child(3), Child(4)]
            self.constant = tf.constant([1.5, 2.5])
            lines = tf.lookup.TextFileInitializer(
                str(vocabulary),
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            )
            self.table = tf.lookup.StaticVocabularyTable(lines, 2)
            self.pairs = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(["x", "y"], [1, 2]), -1
            )
            self.mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0)
            self.mutable.insert(["k", "l", "m"], [4.0, 5.0, 6.0])

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
        def embed(self, words):
            return {
                "ids": self.table.lookup(words),
                "pairs": self.pairs.lookup(words),
                "mutable": self.mutable.lookup(words),
            }

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def control(self, x):
            i, total = tf.constant(0), x
            while i < 3:
                total = total + self.constant[0]
                i += 1
            y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(total), lambda: tf.cos(total))
            y = tf.switch_case(i, [lambda: tf.tan(y), lambda: tf.exp(y)])
            y = tf.map_fn(tf.cumsum, y)

            @tf.custom_gradient
            def squared(v):
                return tf.square(v), lambda upstream: upstream * 100.0

            return squared(y), tf.einsum("ij,ij->i", x, y)

        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
        def ragged(self, r):
            return tf.reduce_sum(r, axis=1), r

        @tf.function(input_signature=[tf.SparseTensorSpec([None, 4], tf.float32)])
        def sparse(self, s):
            return tf.sparse.reduce_sum(s, 1), s

        @tf.function
        def outer(self, x, *rest, scale=2.0):
            return self.child(x) * scale

    root = Root()
    root.child(tf.ones([1, 3]))
    root.child(tf.ones([2, 3]), training=True)
    for layer in root.layers:
        layer(tf.ones([5, 3]))
    root.outer(tf.ones([2, 3]), scale=tf.constant(3.0))
    root.outer(tf.ones([2, 3]), tf.ones([1]))
    root.untraced = tf.function(lambda q: q)
    keys = {
        "serving_default": root.embed,
        "control": root.control,
        "ragged": root.ragged,
        "sparse": root.sparse,
    }
    return root, keys


def sessions(tf, folder):
    """One TF 1.x graph, exported twice: TensorFlow adds a saver to it each time."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], "x")
        with v1.variable_scope("layer", use_resource=True):
            w = v1.get_variable("w", [3, 2], initializer=v1.ones_initializer())
        parts = v1.get_variable(
            "parts",
            [4, 2],
            partitioner=v1.fixed_size_partitioner(2),
            initializer=v1.ones_initializer(),
            use_resource=False,
        )
        looped = v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, x])[1]
        y = tf.add(tf.matmul(looped, w), tf.reduce_sum(parts), name="y")
        session.run(v1.global_variables_initializer())
        info = v1.saved_model.utils.build_tensor_info
        signature = v1.saved_model.build_signature_def(
            {"x": info(x)}, {"y": info(y)}, "tensorflow/serving/predict"
        )
        for name, strip in (("session_1", False), ("session_2", False), ("stripped", True)):
            builder = v1.saved_model.Builder(str(folder / name))
            builder.add_meta_graph_and_variables(
                session, ["serve"], {"serving_default": signature}, strip_default_attrs=strip
            )
            builder.save()


def main():
    import tensorflow as tf

    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        root, keys = build(tf, work)
        tf.saved_model.save(root, str(folder / "first"), signatures=keys)
        if "quick" in sys.argv:
            return
        tf.saved_model.save(root, str(folder / "again"), signatures=keys)
    with tempfile.TemporaryDirectory() as work:
        root, keys = build(tf, work)
        tf.saved_model.save(root, str(folder / "rebuilt"), signatures=keys)
    previous = "first"
    for number in (2, 3, 4):
        loaded = tf.saved_model.load(str(folder / previous))
        previous = f"loaded_{number}"
        tf.saved_model.save(loaded, str(folder / previous), signatures=loaded.signatures)
    sessions(tf, folder)


if __name__ == "__main__":
    main()
