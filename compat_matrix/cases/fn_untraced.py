"""A function without a signature that was never called, beside one that was.

The RFC says saving raises. Shipped TensorFlow saves it silently with no trace, and the loaded
function fails when called.
"""

CLAUSES = ("FN-06",)
FEATURES = ("functions", "refusal")
UNANSWERED = ("never_called",)
CHECKS = ("load", "signatures", "values")


def build(tf, work):
    root = tf.Module()
    root.called = tf.function(lambda x: x + 1.0)
    root.called(tf.constant(1.0))
    root.never_called = tf.function(lambda x: x + 2.0)
    return root


def requests(np):
    return [("called", (np.float32(1),), {}), ("never_called", (np.float32(1),), {})]
