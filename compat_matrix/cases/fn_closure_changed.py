"""A Python value changes between the trace and the export.

The author tested the traced value, and the original keeps using it. Shipped TensorFlow runs the
Python body again while saving and exports the changed value.
"""

CLAUSES = ("FN-17",)
FEATURES = ("functions", "tracing")
CHECKS = ("load", "signatures", "values", "checkpoint")


def build(tf, work):
    root = tf.Module()
    settings = {"factor": 1.0}
    root.f = tf.function(
        lambda x: x * settings["factor"], input_signature=[tf.TensorSpec([], tf.float32)]
    )
    root.f(tf.constant(1.0))
    settings["factor"] = 5.0
    return root, root.f


def requests(np):
    return [("f", (np.float32(1),), {}), ("serving_default", {"x": np.float32(1)})]
