"""A sub-object of a bigger model is exported on its own.

Objects that only the parent owns must not be in the export.
"""

CLAUSES = ("GOAL-01", "FMT-11")
FEATURES = ("functions",)


def build(tf, work):
    parent = tf.Module()
    parent.big = tf.Variable(tf.zeros([1000]))
    parent.child = tf.Module()
    parent.child.w = tf.Variable([1.0, 2.0])
    parent.child.f = tf.function(
        lambda x: x * parent.child.w, input_signature=[tf.TensorSpec([None, 2], tf.float32)]
    )
    return parent.child, parent.child.f


def requests(np):
    x = np.float32([[1, 2]])
    return [("serving_default", {"x": x}), ("f", (x,), {})]
