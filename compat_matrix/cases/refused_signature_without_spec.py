"""Saving must refuse: a function without an input signature, even if it was called, is given as a
signature.
"""

CLAUSES = ("SIG-04",)
FEATURES = ("signatures", "refusal")


def build(tf, work):
    root = tf.Module()
    root.f = tf.function(lambda x: x + 1.0)
    root.f(tf.constant(1.0))
    return root, root.f


def requests(np):
    return [("f", (np.float32(1),), {})]
