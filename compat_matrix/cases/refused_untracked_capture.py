"""Saving must refuse: a function uses a variable that the root does not reach."""

CLAUSES = ("FN-07",)
FEATURES = ("functions", "refusal")


def build(tf, work):
    hidden = tf.Variable(3.0)
    root = tf.Module()
    root.f = tf.function(lambda x: x * hidden, input_signature=[tf.TensorSpec([], tf.float32)])
    return root


def requests(np):
    return [("f", (np.float32(1),), {})]
