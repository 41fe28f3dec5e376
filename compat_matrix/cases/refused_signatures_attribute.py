"""Saving must refuse: the reserved attribute `signatures` holds something other than the map a
loader made.
"""

CLAUSES = ("ATTR-07", "ATTR-08", "ATTR-09")
FEATURES = ("signatures", "refusal")


def build(tf, work):
    root = tf.Module()
    root.f = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([], tf.float32)])
    root.signatures = {"mine": root.f}
    return root


def requests(np):
    return [("f", (np.float32(1),), {})]
