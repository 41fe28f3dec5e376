"""Python numbers and lists are converted if the function has a spec, and preferred as literals if a
literal was traced.

`spec` has an input signature; `traced` has traces for a tensor and for the literal 2.
"""

CLAUSES = ("PRIM-09", "PY-01", "PY-03", "FN-10")
FEATURES = ("functions", "literals")


def build(tf, work):
    root = tf.Module()
    root.spec = tf.function(
        lambda x, y: x + y,
        input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32)],
    )
    root.traced = tf.function(
        lambda x: tf.constant("literal") if isinstance(x, int) else tf.constant("tensor")
    )
    root.traced(tf.constant(1))
    root.traced(2)
    return root, {}


def requests(np):
    return [
        ("spec", ([1.0, 2.0], 3.0), {}),
        ("spec", ([1, 2], 3), {}),
        ("spec", ((1.0, 2.0),), {"y": np.float32(1)}),
        ("traced", (2,), {}),
        ("traced", (np.int32(2),), {}),
    ]
