"""A bfloat16 variable, and a function on bfloat16 tensors.

NumPy has no such type; every reader needs its own way to read the bits.
"""

CLAUSES = ("PRIM-01", "RP-03")
FEATURES = ("variables", "dtypes", "bfloat16")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([1.0, -2.5, float("inf"), float("nan")], dtype=tf.bfloat16)
    root.scale = tf.function(
        lambda x: x * root.v, input_signature=[tf.TensorSpec([4], tf.bfloat16)]
    )
    return root, root.scale


def requests(np):
    x = {"$cast": ["bfloat16", np.float32([2, 4, 1, 0])]}
    return [("serving_default", {"x": x}), ("scale", (x,), {})]
