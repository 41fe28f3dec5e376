"""A CPU kernel that no release has, needed by one of two signatures.

The definition of `Reciprocal` allows int32, but no kernel computes it. Every loader loads the
model, since kernels are looked up when a function runs; the other signature answers.
"""

CLAUSES = ("RP-07", "COMPAT-02")
FEATURES = ("missing_kernel", "refusal", "version_skew")
CHECKS = ("load", "values")
UNANSWERED = ("serving_default",)


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])
    root.free = tf.function(
        lambda x: {"y": x * root.v}, input_signature=[tf.TensorSpec([2], tf.float32)]
    )
    root.lacking = tf.function(
        lambda n: {"y": tf.raw_ops.Reciprocal(x=n)}, input_signature=[tf.TensorSpec([2], tf.int32)]
    )
    return root, {"serving_default": root.lacking, "free": root.free}


def requests(np):
    return [("free", {"x": np.float32([1, 3])}), ("serving_default", {"n": np.int32([1, 2])})]
