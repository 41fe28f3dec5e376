"""NaN as a literal argument: it is not equal to itself, so a loader that compares with `==` never
finds the trace.
"""

CLAUSES = ("PY-06",)
FEATURES = ("functions", "literals")
CHECKS = ("load", "values")


def build(tf, work):
    root = tf.Module()
    root.f = tf.function(lambda x, fill: tf.where(x > 0.0, x, fill))
    root.f(tf.constant(1.0), float("nan"))
    return root


def requests(np):
    return [("f", (np.float32(2), float("nan")), {})]
