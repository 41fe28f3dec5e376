"""RFC example: a call with a shape that was never traced is refused.

`c_dep` was traced only for a vector. A loaded function cannot trace again, so a scalar must raise
an error.
"""

CLAUSES = ("FN-13",)
FEATURES = ("functions", "refusal")
CHECKS = ("load", "signatures", "values")
UNANSWERED = ("c_dep",)


def build(tf, work):
    root = tf.Module()
    root.c_dep = tf.function(lambda x: x + 3.0)
    root.c_dep(tf.constant([1.0, 2.0]))
    return root


def requests(np):
    return [("c_dep", (np.float32(1),), {})]
