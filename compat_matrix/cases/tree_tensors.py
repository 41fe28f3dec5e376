"""Eager tensors captured by functions: a constant on an attribute, one shared by two functions, a
large and a string one.

No variable: the values live in the graph as constants.
"""

CLAUSES = ("FN-07", "FMT-01", "NG-03")
FEATURES = ("constants", "strings")


def build(tf, work):
    root = tf.Module()
    shared = tf.constant([1.0, 2.0, 3.0])
    large = tf.reshape(tf.range(4096, dtype=tf.float32), [64, 64])
    words = tf.constant(["zero", "one", "two"])
    root.table = tf.constant([[1, 2], [3, 4]])
    root.f = tf.function(
        lambda x: x * shared + tf.reduce_sum(large),
        input_signature=[tf.TensorSpec([None, 3], tf.float32)],
    )
    root.g = tf.function(
        lambda i: tf.gather(shared, i), input_signature=[tf.TensorSpec([None], tf.int32)]
    )
    root.h = tf.function(
        lambda i: {"word": tf.gather(words, i), "row": root.table[0]},
        input_signature=[tf.TensorSpec([None], tf.int32)],
    )
    return root, {"f": root.f, "g": root.g, "h": root.h}


def requests(np):
    return [
        ("f", {"x": np.float32([[1, 2, 3]])}),
        ("g", {"i": np.int32([2, 0])}),
        ("h", {"i": np.int32([2, 1, 1])}),
        ("f", (np.float32([[0, 0, 1]]),), {}),
    ]
