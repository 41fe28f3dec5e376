"""Requests that the model refuses, by an assertion of its author and by a kernel, among requests
that it answers.

A client relies on the error as on an answer: a client that gets numbers in its place takes them for
true.
"""

CLAUSES = ("SIG-17",)
FEATURES = ("signatures", "errors")
REFUSED = {
    "positive-1": "x must be positive",
    "positive-3": "x must be positive",
    "inverse-1": "Input is not invertible",
}


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def positive(x):
        tf.debugging.assert_positive(x, message="x must be positive")
        return x * root.v

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])
    def inverse(x):
        return tf.linalg.inv(x) * root.v

    root.positive, root.inverse = positive, inverse
    return root, {"positive": positive, "inverse": inverse}


def requests(np):
    good, bad = np.float32([1, 4]), np.float32([1, -4])
    return [
        ("positive", {"x": good}),
        ("positive", {"x": bad}),
        ("inverse", {"x": np.float32([[2, 0], [0, 4]])}),
        ("inverse", {"x": np.float32([[2, 4], [1, 2]])}),
        ("positive", (good,), {}),
        ("positive", (bad,), {}),
    ]
