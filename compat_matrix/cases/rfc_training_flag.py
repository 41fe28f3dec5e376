"""RFC example: a Python argument chooses the concrete function, by keyword or by position.

Traced once with `training=True` and once with `training=False`; both traces are in the file and a
call picks one.
"""

CLAUSES = ("PY-01", "PY-06", "PRIM-02")
FEATURES = ("functions", "literals")


def build(tf, work):
    @tf.function
    def f(x, training):
        return x if training else 2.0

    f(tf.constant(-1.0), training=True)
    f(tf.constant(-1.0), training=False)
    return tf.train.Checkpoint(f=f)


def requests(np):
    x = np.float32(10)
    return [
        ("f", (x,), {"training": True}),
        ("f", (x,), {"training": False}),
        ("f", (x, True), {}),
        ("f", (), {"x": x, "training": False}),
    ]
