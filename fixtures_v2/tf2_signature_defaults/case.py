"""Tensors as defaults of arguments, stored in the SignatureDef (TF 2.13 and later)."""

CLAUSES = ("PY-09", "SIG-07")
FEATURES = ("signatures", "defaults")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)
    specs = [tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32)]

    @tf.function(input_signature=specs)
    def f(x, scale=tf.constant(4.0)):  # noqa: B008
        return {"y": x * root.v * scale}

    root.f = f
    return root, f


def requests(np):
    x = np.float32([1, -1])
    return [("serving_default", {"x": x, "scale": np.float32(3)})]
