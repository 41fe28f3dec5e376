"""Saving must refuse: a signature returns a nested structure, which a client could not name."""

CLAUSES = ("SIG-12", "PY-10")
FEATURES = ("signatures", "refusal")


def build(tf, work):
    root = tf.Module()
    root.f = tf.function(
        lambda x: {"a": [x, x + 1.0]}, input_signature=[tf.TensorSpec([], tf.float32)]
    )
    return root, root.f


def requests(np):
    return [("f", (np.float32(1),), {})]
