"""`1`, `1.0` and `True` are equal in Python, so they share one trace: the first one made.

A loader has to compare literals as the original does: it must neither refuse `True` nor choose
another trace.
"""

CLAUSES = ("PY-06",)
FEATURES = ("functions", "literals")


def build(tf, work):
    root = tf.Module()
    root.describe = tf.function(lambda x, option: {"text": tf.constant(repr(option)), "x": x * 2.0})
    for option in (1, True, 1.0, 0.0, False, 0):
        root.describe(tf.constant(1.0), option)
    return root


def requests(np):
    return [("describe", (np.float32(3), option), {}) for option in (1, True, 1.0, 0, False, 0.0)]
