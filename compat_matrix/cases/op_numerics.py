"""NaN, infinities, negative zero, denormal numbers and integers that overflow, through arithmetic
and as outputs.
"""

CLAUSES = ("SIG-17", "RP-10")
FEATURES = ("ops", "numerics")


def build(tf, work):
    root = tf.Module()

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.int32)]
    )
    def compute(x, i):
        return {
            "same": tf.identity(x),
            "negated": -x,
            "is_nan": tf.math.is_nan(x),
            "divided": tf.math.divide_no_nan(x, tf.zeros_like(x)),
            "reciprocal": 1.0 / x,
            "overflow": i * i,
            "narrow": tf.cast(i, tf.int8),
            "unsigned": tf.bitcast(i, tf.uint32),
            "bits": tf.bitcast(x, tf.int32),
        }

    root.compute = compute
    return root, compute


def requests(np):
    x = np.float32([np.nan, np.inf, -np.inf, -0.0, 0.0, 2.0**-126, 3.4028235e38])
    i = np.int32([2**31 - 1, -(2**31), 65536, 300, -1])
    return [("serving_default", {"x": x, "i": i}), ("compute", (x, i), {})]
