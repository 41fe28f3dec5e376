"""map_fn, scan, foldl and vectorized_map, with a captured variable and two levels of loops."""

CLAUSES = ("RP-07", "COMPAT-05")
FEATURES = ("control flow", "tensor lists")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def run(x):
        return {
            "map": tf.map_fn(lambda row: tf.map_fn(lambda e: e * root.v, row), x),
            "scan": tf.scan(lambda a, row: a + row, x, initializer=tf.zeros([3])),
            "fold": tf.foldl(
                lambda a, row: a * 2.0 + tf.reduce_sum(row), x, initializer=root.v + 0.0
            ),
            "vectorized": tf.vectorized_map(lambda row: tf.reduce_sum(row) * root.v, x),
        }

    root.run = run
    return root, run


def requests(np):
    return [("serving_default", {"x": np.arange(6, dtype=np.float32).reshape(2, 3)})]
