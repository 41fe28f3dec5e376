"""`signatures={}` suppresses the signature that would be inferred."""

CLAUSES = ("ATTR-04", "IMP-06", "API-05")
FEATURES = ("signatures", "inferred signature")


def build(tf, work):
    root = tf.Module()
    root.f = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([], tf.float32)])
    return root, {}


def requests(np):
    return [("f", (np.float32(1),), {})]
