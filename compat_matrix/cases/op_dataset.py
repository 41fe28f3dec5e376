"""A tf.data pipeline inside a function: datasets are variants, their bodies are functions of the
library.
"""

CLAUSES = ("RP-07", "SIG-17")
FEATURES = ("ops", "datasets", "control flow")


def build(tf, work):
    root = tf.Module()
    root.factor = tf.Variable(3, dtype=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def total(n):
        dataset = (
            tf.data.Dataset.range(n).map(lambda i: i * 2).filter(lambda i: i % 3 != 0).batch(2)
        )
        out = tf.constant(0, tf.int64)
        for batch in dataset:
            out += tf.reduce_sum(batch)
        return out * root.factor

    root.total = total
    return root, total


def requests(np):
    return [("serving_default", {"n": np.int64(10)}), ("total", (np.int64(0),), {})]
