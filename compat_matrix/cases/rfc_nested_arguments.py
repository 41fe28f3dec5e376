"""RFC example: tuples, dicts and lists nested in arguments and results.

0.1 and 0.2 of the RFC are replaced by numbers that float32 holds exactly.
"""

CLAUSES = ("PY-03", "PRIM-02")
FEATURES = ("functions", "nests")


def build(tf, work):
    @tf.function
    def g(x):
        return [x[0] + 0.25, x[1]["a"] + 0.5]

    g((tf.constant(1.0), {"a": tf.constant(2.0)}))
    return tf.train.Checkpoint(g=g)


def requests(np):
    return [("g", ((np.float32(-1), {"a": np.float32(-2)}),), {})]
