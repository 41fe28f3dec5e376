"""Custom gradients whose gradients are custom gradients again: a sum over replicas, a recomputed
function, the author's own.

Every training step of a Keras optimizer has such a sum, and the gradient of the sum is again a sum
over replicas. Steps are powers of two, which keeps the numbers exact. The gradients of the first
two are the true ones, so a loader that forgets them computes the same. Those of `squared` and
`slope` are not: 8 times and 32 times the true ones.
"""

CLAUSES = ("FMT-14", "GOAL-02", "GOAL-06")
FEATURES = ("functions", "gradients", "state")
STATEFUL = True
# in older releases, the sum over replicas has no gradient inside a traced function
REQUIRES = "tensorflow>=2.2"


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable([1.0, -2.0])
    weighted = tf.recompute_grad(lambda x: tf.linalg.matvec(x, root.w) * 2.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def forward(x):
        return tf.distribute.get_replica_context().all_reduce("SUM", weighted(x))

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def train(x):
        with tf.GradientTape() as tape:
            y = tf.distribute.get_replica_context().all_reduce("SUM", tf.linalg.matvec(x, root.w))
            loss = tf.reduce_sum(y * y)
        (gradient,) = tf.distribute.get_replica_context().all_reduce(
            "SUM", [tape.gradient(loss, root.w)]
        )
        root.w.assign_sub(gradient * 0.125)
        return {"loss": loss}

    root.squared = tf.function(_squared(tf), input_signature=[tf.TensorSpec([], tf.float32)])

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = _squared(tf)(x)
        return tape.gradient(y, x)

    root.slope = slope
    root.forward, root.train = forward, train
    return root, {"forward": forward, "train": train}


def _squared(tf):
    """Return the square with a gradient of 16 x, whose own gradient is 512."""

    @tf.custom_gradient
    def sixteenfold(x):
        return x * 16.0, lambda dy: dy * 512.0

    @tf.custom_gradient
    def squared(x):
        return x * x, lambda dy: dy * sixteenfold(x)

    return squared


def requests(np):
    one = np.float32(1.5)
    x = np.float32([[1, 2], [0, 1]])
    return [
        ("forward", {"x": x}),
        ("train", {"x": x}),
        ("train", {"x": x}),
        ("forward", {"x": x}),
        ("forward", (x,), {}),
        ("squared", (one,), {}),
        ("slope", (one,), {}),
    ]
