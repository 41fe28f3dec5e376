"""Functions that round differently from one build or machine to another: the one case that needs a
tolerance.
"""

CLAUSES = ("SIG-17",)
FEATURES = ("ops", "numerics")
TOLERANCE = (
    2e-6,
    1e-6,
    "vectorised exp, log and long sums round differently between kernels and versions",
)
REQUIRES = "tensorflow>=2.4"  # tf.nn.gelu


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable(tf.reshape(tf.sin(tf.range(64, dtype=tf.float32)), [8, 8]))

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32)])
    def run(x):
        h = tf.matmul(x, root.w)
        return {
            "softmax": tf.nn.softmax(h),
            "gelu": tf.nn.gelu(h),
            "tanh": tf.tanh(h),
            "log": tf.math.log1p(tf.abs(h)),
            "norm": tf.nn.l2_normalize(h, axis=1),
        }

    root.run = run
    return root, run


def requests(np):
    return [("serving_default", {"x": np.arange(16, dtype=np.float32).reshape(2, 8) / 8})]
