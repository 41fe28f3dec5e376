"""RFC example, literally: traced with the Python number -1., called with 10.

The RFC says the answer is 10. Shipped TensorFlow bakes the number into the trace and refuses the
call.
"""

CLAUSES = ("PY-02",)
FEATURES = ("functions", "literals")
CHECKS = ("load", "values")


def build(tf, work):
    @tf.function
    def f(x, training):
        return x if training else 2.0

    f(-1.0, training=True)
    f(-1.0, training=False)
    return tf.train.Checkpoint(f=f)


def requests(np):
    return [("f", (10.0,), {"training": False}), ("f", (10.0,), {"training": True})]
