"""A function whose traces were generalised (`reduce_retracing`): the second call made the dimension
unknown.
"""

import inspect

CLAUSES = ("FN-05", "FMT-03")
FEATURES = ("functions", "shapes")


def build(tf, work):
    root = tf.Module()
    known = inspect.signature(tf.function).parameters
    relaxed = {
        "reduce_retracing" if "reduce_retracing" in known else "experimental_relax_shapes": True
    }  # the name until 2.9
    root.f = tf.function(lambda x: tf.reduce_sum(x, axis=0), **relaxed)
    for rows in (1, 2, 3):
        root.f(tf.ones([rows, 2]))
    return root


def requests(np):
    return [("f", (np.ones([rows, 2], np.float32),), {}) for rows in (1, 2, 7)]
