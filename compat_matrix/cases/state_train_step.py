"""A training step with its own momentum slots, exported as a signature: gradients and updates
inside the model.

The optimizer is written with plain variables, so nothing depends on an optimizer class. Steps and
momentum are powers of two, which keeps the numbers exact.
"""

CLAUSES = ("OPT-03", "GOAL-03", "GOAL-06", "FMT-14")
FEATURES = ("state", "gradients", "signatures")
STATEFUL = True


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable([1.0, -2.0])
    root.momentum = tf.Variable([0.0, 0.0], trainable=False)
    root.step = tf.Variable(0, dtype=tf.int64, trainable=False)

    @tf.function(
        input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.float32)]
    )
    def train(x, y):
        with tf.GradientTape() as tape:
            error = tf.linalg.matvec(x, root.w) - y
            loss = tf.reduce_sum(error * error) * 0.5
        gradient = tape.gradient(loss, root.w)
        root.momentum.assign(root.momentum * 0.5 + gradient)
        root.w.assign_sub(root.momentum * 0.125)
        return {"loss": loss, "step": root.step.assign_add(1)}

    root.train = train
    root.predict = tf.function(
        lambda x: tf.linalg.matvec(x, root.w),
        input_signature=[tf.TensorSpec([None, 2], tf.float32)],
    )
    return root, {"train": train, "predict": root.predict}


def requests(np):
    x, y = np.float32([[1, 2], [0, 1]]), np.float32([1, 1])
    return [
        ("predict", {"x": x}),
        ("train", {"x": x, "y": y}),
        ("train", {"x": x, "y": y}),
        ("predict", {"x": x}),
    ]
