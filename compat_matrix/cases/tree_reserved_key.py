"""A dict key that is the checkpoint's own reserved word `.ATTRIBUTES`.

The key has to be escaped like any other key. Shipped TensorFlow writes an entry that its own loader
does not find.
"""

CLAUSES = ("FN-01", "PRIM-06")
FEATURES = ("names", "checkpoint")


def build(tf, work):
    root = tf.Module()
    root.by_key = {".ATTRIBUTES": tf.Variable(3.0)}
    root.read = tf.function(
        lambda x: x * root.by_key[".ATTRIBUTES"], input_signature=[tf.TensorSpec([], tf.float32)]
    )
    return root, root.read


def requests(np):
    return [("serving_default", {"x": np.float32(2)}), ("read", (np.float32(4),), {})]
