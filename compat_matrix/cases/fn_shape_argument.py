"""A TensorShape as an argument.

The RFC promises the type and the format has a field for it; shipped TensorFlow drops such traces
silently. It keeps only a weak reference to the shape of a call, so the model holds the shape, as a
reshaping layer does.
"""

CLAUSES = ("PY-07",)
FEATURES = ("functions", "literals")
CHECKS = ("load", "values")


def build(tf, work):
    root = tf.Module()
    root.target_shape = tf.TensorShape([2, 3])
    root.reshape = tf.function(lambda x, shape: tf.reshape(x, shape))
    root.reshape(tf.zeros([6]), root.target_shape)
    return root


def requests(np):
    return [("reshape", (np.arange(6, dtype=np.float32), {"$shape": [2, 3]}), {})]
