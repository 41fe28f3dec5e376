"""A dtype as an argument chooses the trace."""

CLAUSES = ("PY-08", "FMT-05")
FEATURES = ("functions", "literals")


def build(tf, work):
    root = tf.Module()
    root.cast = tf.function(lambda x, dtype: tf.cast(x, dtype) + 1)
    for dtype in (tf.float32, tf.int32, tf.bfloat16):
        root.cast(tf.constant([1.5, 2.5]), dtype)
    return root


def requests(np):
    x = np.float32([1.5, 2.5])
    return [("cast", (x, {"$dtype": name}), {}) for name in ("float32", "int32", "bfloat16")]
