"""A device named inside a function is hard-coded in the file; one around the call or the trace is
not.
"""

CLAUSES = ("DEV-01", "DEV-02", "DEV-03", "DEV-04")
FEATURES = ("devices",)


def build(tf, work):
    root = tf.Module()
    with tf.device("/cpu:0"):
        root.v = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def f(x):
        with tf.device("/device:CPU:0"):
            pinned = x * root.v
        return pinned + 1.0

    root.f = f
    with tf.device("/cpu:0"):
        f(tf.zeros([2]))
    return root, f


def requests(np):
    x = np.float32([1, 2])
    return [("serving_default", {"x": x}), ("f", (x,), {})]
