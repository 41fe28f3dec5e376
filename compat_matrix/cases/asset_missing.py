"""A file marked as an asset that does not exist.

The export cannot be complete. Shipped TensorFlow saves it silently and fails when loading.
"""

import os

CLAUSES = ("RES-06",)
FEATURES = ("assets", "refusal")
CHECKS = ("load",)


def build(tf, work):
    path = os.path.join(work, "vocab.txt")
    with open(path, "w") as stream:
        stream.write("word\n")
    root = tf.Module()
    index = tf.lookup.TextFileIndex
    initializer = tf.lookup.TextFileInitializer(
        path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    root.table = tf.lookup.StaticHashTable(initializer, -1)
    os.remove(path)
    return root


def requests(np):
    return []
