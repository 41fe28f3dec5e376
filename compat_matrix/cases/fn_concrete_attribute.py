"""A ConcreteFunction on an attribute, without the polymorphic function it came from.

The function is callable with keywords and, as the only candidate, becomes the default signature.
"""

CLAUSES = ("PRIM-03", "IMP-01", "SIG-05")
FEATURES = ("functions", "inferred signature")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x, scale):
        return x * root.v * scale

    root.concrete = f.get_concrete_function(
        tf.TensorSpec([None, 2], tf.float32), scale=tf.TensorSpec([], tf.float32)
    )
    return root, None, {"serving_default": root.concrete}


def requests(np):
    x, scale = np.float32([[1, 1], [2, 3]]), np.float32(2)
    return [
        ("serving_default", {"x": x, "scale": scale}),
        ("concrete", (), {"x": x, "scale": scale}),
    ]
