"""Batches of every form: no rows, one row, a scalar, a batch after the first dimension, outputs
with different batch sizes.

A client that writes row by row can send only some of these, and can receive even fewer.
"""

CLAUSES = ("SIG-07", "SIG-17", "COMPAT-05")
FEATURES = ("signatures", "shapes", "empty", "serving")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([[1.0, 0.5, -1.0], [0.0, 2.0, 0.25]])

    def make(f, **shapes):
        specs = [tf.TensorSpec(shapes[name], tf.float32, name=name) for name in sorted(shapes)]
        return tf.function(f, input_signature=specs, autograph=False)

    root.functions = {
        "rows": make(lambda x: {"y": tf.matmul(x, root.v)}, x=[None, 2]),
        "one_of_two": make(
            lambda a, b: {"first": a + b, "second": tf.matmul(a, root.v)}, a=[None, 2], b=[None, 2]
        ),
        "shared_row": make(lambda a, b: {"y": a + b}, a=[None, 2], b=[2]),
        "scalar": make(lambda x: {"y": x + 1.0, "half": x / 2.0}, x=[]),
        "scalar_output": make(lambda x: {"sum": tf.reduce_sum(x)}, x=[None]),
        "disagreeing": make(
            lambda x: {"x": -x, "shape": tf.shape(x), "flat": tf.reshape(x, [-1])}, x=[None, 2]
        ),
        "columns": make(lambda x: {"y": tf.transpose(x)}, x=[2, None]),
    }
    return root, dict(root.functions)


def requests(np):
    rows = np.float32([[1, 2], [3, 4], [0, -1]])
    return [
        ("rows", {"x": rows}),
        ("rows", {"x": rows[:1]}),
        ("rows", {"x": rows[:0]}),
        ("one_of_two", {"a": rows, "b": rows[::-1].copy()}),
        ("one_of_two", {"a": rows[:1], "b": rows[1:2]}),
        ("shared_row", {"a": rows, "b": rows[0]}),
        ("scalar", {"x": np.float32(3)}),
        ("scalar_output", {"x": rows[:, 0].copy()}),
        ("scalar_output", {"x": np.float32([])}),
        ("disagreeing", {"x": rows}),
        ("disagreeing", {"x": rows[:0]}),
        ("columns", {"x": np.float32([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])}),
    ]
