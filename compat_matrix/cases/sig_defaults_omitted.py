"""Inputs with a stored default are left out of the request.

A session finds the default at the placeholder. Shipped TensorFlow's loaded signature requires the
input nevertheless.
"""

CLAUSES = ("PY-09", "SIG-07")
FEATURES = ("signatures", "defaults")
CHECKS = ("load", "signatures", "values")
REQUIRES = "tensorflow>=2.14"  # older releases refuse tensors as defaults


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([], tf.float32),
            tf.TensorSpec([2], tf.string),
        ]
    )
    def f(x, scale=tf.constant(4.0), labels=tf.constant(["no", "yes"])):  # noqa: B008
        return {"x": x * root.v * scale, "label": tf.gather(labels, tf.cast(x > 0.0, tf.int32))}

    root.f = f
    return root, f


def requests(np):
    x = np.float32([1, -1])
    return [
        ("serving_default", {"x": x, "labels": np.array([b"0", b"1"], object)}),
        ("serving_default", {"x": x}),
    ]
