"""One function, five traces: by rank, by dtype and by an unknown dimension.

A call uses the trace that fits; each trace has its own FunctionDef.
"""

CLAUSES = ("FN-05", "FMT-03", "PRIM-03")
FEATURES = ("functions", "shapes")


def build(tf, work):
    root = tf.Module()
    root.f = tf.function(lambda x: x + tf.cast(tf.size(x), x.dtype) * 10)
    root.f(tf.constant(1.0))
    root.f(tf.constant([1.0, 2.0]))
    root.f(tf.constant(1, tf.int64))
    root.f.get_concrete_function(tf.TensorSpec([None, 3], tf.float32))
    root.f.get_concrete_function(tf.TensorSpec([None, None], tf.int32))
    return root


def requests(np):
    inputs = [
        np.float32(1),
        np.float32([1, 2]),
        np.int64(5),
        np.zeros([4, 3], np.float32),
        np.zeros([0, 3], np.float32),
        np.int32([[1, 2]]),
    ]
    return [("f", (x,), {}) for x in inputs]
