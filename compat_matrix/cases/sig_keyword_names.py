"""Inputs named like Python keywords, `in` and `from`: TensorFlow cannot write them;
`reference_impl` writes what it can read.

Callers pass them as `**{"in": x}`.
"""

CLAUSES = ("SIG-07",)
FEATURES = ("signatures", "names")


def build(tf, work):
    root = tf.Module()
    specs = [tf.TensorSpec([None], tf.float32, name=name) for name in ("in", "from")]
    root.f = tf.function(lambda x, y: {"difference": x - 10.0 * y}, input_signature=specs)
    return root, root.f, {"serving_default": lambda **given: root.f(given["in"], given["from"])}


def requests(np):
    return [("serving_default", {"in": np.float32([2, 1]), "from": np.float32([3, 5])})]
