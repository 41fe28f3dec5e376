"""Functions that differentiate: with respect to a variable, a second time, through cond and while.

The library then holds forward and backward functions that only gradients refer to.
"""

CLAUSES = ("FMT-14", "GOAL-03", "RP-07")
FEATURES = ("functions", "gradients", "control flow")


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable(3.0)
    spec = [tf.TensorSpec([], tf.float32)]

    @tf.function(input_signature=spec)
    def loss(x):
        y = tf.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, y * root.w), [tf.constant(0), x]
        )[1]
        return tf.cond(x > 0.0, lambda: y * y, lambda: y)

    @tf.function(input_signature=spec)
    def first(x):
        with tf.GradientTape() as tape:
            y = loss(x)
        return tape.gradient(y, root.w)

    @tf.function(input_signature=spec)
    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x * x * x * root.w
            gradient = inner.gradient(y, x)
        return outer.gradient(gradient, x)

    root.loss, root.first, root.second = loss, first, second
    return root, {"first": first, "second": second}


def requests(np):
    return [
        ("first", {"x": np.float32(1)}),
        ("first", {"x": np.float32(-1)}),
        ("second", {"x": np.float32(2)}),
        ("loss", (np.float32(2),), {}),
    ]
