"""A function whose traces were generalised (`reduce_retracing`): the second call made the dimension unknown."""

CLAUSES = ("FN-05", "FMT-03")
FEATURES = ("functions", "shapes")
REQUIRES = "tensorflow>=2.9"


def build(tf, work):
    root = tf.Module()
    root.f = tf.function(lambda x: tf.reduce_sum(x, axis=0), reduce_retracing=True)
    for rows in (1, 2, 3):
        root.f(tf.ones([rows, 2]))
    return root


def requests(np):
    return [("f", (np.ones([rows, 2], np.float32),), {}) for rows in (1, 2, 7)]
