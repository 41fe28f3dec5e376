"""Batch normalisation: calling with `training=True` runs the update of the moving statistics.

Two traces share the variables; the inference signature sees what the training function changed.
"""

CLAUSES = ("GOAL-04", "GOAL-08", "PY-01", "METH-03")
FEATURES = ("state", "literals", "methods")
STATEFUL = True


def build(tf, work):
    class Norm(tf.Module):
        def __init__(self):
            super().__init__()
            self.mean = tf.Variable([0.0, 0.0], trainable=False)
            self.gamma = tf.Variable([2.0, 4.0])

        @tf.function
        def __call__(self, x, training):
            if training:
                self.mean.assign(self.mean * 0.5 + tf.reduce_mean(x, axis=0) * 0.5)
            return (x - self.mean) * self.gamma

    root = Norm()
    spec = tf.TensorSpec([None, 2], tf.float32)
    signatures = {
        "train": root.__call__.get_concrete_function(spec, training=True),
        "serve": root.__call__.get_concrete_function(spec, training=False),
    }
    return root, signatures


def requests(np):
    x = np.float32([[1, 2], [3, 6]])
    return [
        ("serve", {"x": x}),
        ("train", {"x": x}),
        ("serve", {"x": x}),
        ("__call__", (x, True), {}),
        ("__call__", (x,), {"training": False}),
    ]
