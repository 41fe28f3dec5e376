"""RFC example: a map of signatures exports each of them, one under the default key.

Both are methods of one object and share its variable.
"""

CLAUSES = (
    "SIG-01",
    "SIG-02",
    "SIG-15",
    "SIG-16",
    "SIG-17",
    "COMPAT-06",
    "FMT-06",
    "FMT-08",
    "DR-04",
)
FEATURES = ("signatures", "methods")


def build(tf, work):
    spec = [tf.TensorSpec([None, 5], tf.float32)]

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.bias = tf.Variable([1.0, 2.0, 3.0, 4.0, 5.0])

        @tf.function(input_signature=spec)
        def infer(self, x):
            return x + self.bias

        @tf.function(input_signature=spec)
        def score(self, x):
            return tf.reduce_sum(x * self.bias, axis=1)

    net = Net()
    return net, {"serving_default": net.infer, "other_signature_key": net.score}


def requests(np):
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    return [
        ("serving_default", {"x": x}),
        ("other_signature_key", {"x": x}),
        ("infer", (x,), {}),
    ]
