"""A counter: each call reads the variable after it has changed it."""

CLAUSES = ("FMT-14",)
FEATURES = ("state", "signatures")
STATEFUL = True


def build(tf, work):
    root = tf.Module()
    root.total = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def count(x):
        root.total.assign_add(x)
        return {"total": root.total * 2.0}

    root.count = count
    return root, count


def requests(np):
    return [("serving_default", {"x": np.float32(x)}) for x in (1, 2, 4)]
