"""Tensor defaults of arguments are stored in the SignatureDef, and all values are given.

Not in the RFC; the field is newer than TensorFlow 2.12 and must not break readers that do not know
it.
"""

CLAUSES = ("PY-09", "SIG-07")
FEATURES = ("signatures", "defaults")
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
    labels = np.array([b"0", b"1"], object)
    return [
        ("serving_default", {"x": np.float32([1, -1]), "scale": np.float32(1), "labels": labels})
    ]
