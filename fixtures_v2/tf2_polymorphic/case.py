"""A function with several traces, chosen by literals, structures, defaults and keywords.

The record of its Python signature changed between releases (`FunctionSpec`, argument names).
"""

CLAUSES = ("FN-05", "PY-06", "PY-09")
FEATURES = ("functions", "arguments")


def build(tf, work):
    root = tf.Module()
    root.offset = tf.Variable(0.5)

    @tf.function
    def f(x, scale=2.0, training=False, extra=None):
        y = x * scale + root.offset
        if extra is not None:
            y = y + extra["a"] - extra["b"][0]
        return {"y": -y if training else y}

    x = tf.constant([1.0, 2.0])
    extra = {"a": tf.constant(1.0), "b": [tf.constant(2.0)]}
    f(x)
    f(x, training=True)
    f(x, 4.0)
    f(x, extra=extra)
    root.f = f
    return root, {"serving_default": f.get_concrete_function(tf.TensorSpec([None], tf.float32))}


def requests(np):
    x = np.float32([1, 2])
    extra = {"a": np.float32(10), "b": [np.float32(3)]}
    return [
        ("serving_default", {"x": np.float32([1, 2, 3])}),
        ("f", (x,), {}),
        ("f", (x,), {"training": True}),
        ("f", (x, 4.0), {}),
        ("f", (x,), {"extra": extra}),
    ]
