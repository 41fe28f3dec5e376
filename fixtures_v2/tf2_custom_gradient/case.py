"""A custom gradient, used by a function that differentiates.

Later releases save the author's gradient (100 times, not 2 times) as a function of the library.
"""

CLAUSES = ("FMT-14", "GOAL-02")
FEATURES = ("functions", "gradients")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(3.0)

    @tf.custom_gradient
    def scaled(x):
        return x * 2.0, lambda dy: dy * 100.0

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
    def forward(x):
        return scaled(x) * root.v

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = forward(x) + scaled(scaled(x))
        return {"dx": tape.gradient(y, x)}

    root.forward, root.gradient = forward, gradient
    return root, {"serving_default": forward, "gradient": gradient}


def requests(np):
    x = np.float32(2)
    return [("serving_default", {"x": x}), ("gradient", {"x": x}), ("forward", (x,), {})]
