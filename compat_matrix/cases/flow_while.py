"""while_loop over a captured variable, with a shape that grows and with several loop variables."""

CLAUSES = ("RP-07", "COMPAT-05", "SIG-17")
FEATURES = ("control flow",)


def build(tf, work):
    root = tf.Module()
    root.step = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)])
    def grow(n, x):
        def body(i, x, total):
            return i + 1, tf.concat([x, [root.step * tf.cast(i, tf.float32)]], 0), total + root.step

        shapes = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([])]
        _, x, total = tf.while_loop(
            lambda i, *_: i < n, body, [0, x, 0.0], shape_invariants=shapes, parallel_iterations=1
        )
        return {"x": x, "total": total}

    root.grow = grow
    return root, grow


def requests(np):
    x = np.float32([9])
    return [
        ("serving_default", {"n": np.int32(3), "x": x}),
        ("serving_default", {"n": np.int32(0), "x": x}),
        ("grow", (np.int32(1), x), {}),
    ]
