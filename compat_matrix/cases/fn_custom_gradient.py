"""A custom gradient, used by a function that differentiates, and chained twice.

The exported gradient is the author's (100 times), not the true one. A client that differentiates
the loaded function gets it too: the gradient of `forward` is 300 and not 6.
"""

CLAUSES = ("FMT-14", "GOAL-02")
FEATURES = ("functions", "gradients")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(3.0)

    @tf.custom_gradient
    def scaled(x):
        return x * 2.0, lambda dy: dy * 100.0

    root.forward = tf.function(
        lambda x: scaled(x) * root.v, input_signature=[tf.TensorSpec([], tf.float32)]
    )

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = root.forward(x) + scaled(scaled(x))
        return tape.gradient(y, x)

    root.gradient = gradient
    return root, {"forward": root.forward, "gradient": gradient}


def requests(np):
    x = np.float32(2)
    return [
        ("forward", {"x": x}),
        ("gradient", {"x": x}),
        ("gradient", (x,), {}),
        ("forward", (x,), {}),
    ]
