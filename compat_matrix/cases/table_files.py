"""Tables from one file: whole line to line number and back, and columns split by a delimiter.

Two tables read the same file, which must be copied once and be found by both.
"""

import os

CLAUSES = ("PRIM-07", "RES-05", "RES-10", "RES-13", "RES-14", "RP-09")
FEATURES = ("tables", "assets", "strings")


def build(tf, work):
    path = os.path.join(work, "prices.txt")
    with open(path, "w") as stream:
        stream.write("apple;3;0.5\npear;7;0.25\nfig;11;2.0\n")
    index = tf.lookup.TextFileIndex
    root = tf.Module()

    def table(key_dtype, key, value_dtype, value, default):
        initializer = tf.lookup.TextFileInitializer(
            path, key_dtype, key, value_dtype, value, delimiter=";"
        )
        return tf.lookup.StaticHashTable(initializer, default)

    root.prices = table(tf.string, 0, tf.float32, 2, -1.0)
    root.codes = table(tf.string, 0, tf.int64, 1, -1)
    root.lines = table(tf.int64, index.LINE_NUMBER, tf.string, index.WHOLE_LINE, "")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def lookup(fruit):
        line = root.lines.lookup(tf.range(tf.size(fruit), dtype=tf.int64))
        return {"price": root.prices.lookup(fruit), "code": root.codes.lookup(fruit), "line": line}

    root.lookup = lookup
    return root, lookup


def requests(np):
    return [("serving_default", {"fruit": np.array([b"fig", b"apple", b"kiwi", b"pear"], object)})]
