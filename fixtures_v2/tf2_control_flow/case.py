"""Loops and branches of TF 2: a while loop with a growing shape, a nested branch, and a map.

Later releases lower and name the functions of branches and loops otherwise.
"""

CLAUSES = ("RP-07", "COMPAT-05", "SIG-17")
FEATURES = ("control flow",)


def build(tf, work):
    root = tf.Module()
    root.step = tf.Variable(2.0)
    specs = [tf.TensorSpec([], tf.int32, "n"), tf.TensorSpec([None], tf.float32, "x")]

    @tf.function(input_signature=specs)
    def f(n, x):
        def body(i, x):
            more = tf.cond(i % 2 > 0, lambda: root.step * 10.0, lambda: -root.step)
            return i + 1, tf.concat([x, [more]], 0)

        shapes = [tf.TensorShape([]), tf.TensorShape([None])]
        _, grown = tf.while_loop(lambda i, _: i < n, body, [0, x], shape_invariants=shapes)
        return {"x": grown, "map": tf.map_fn(lambda e: e * root.step, grown)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, "n")])
    def chosen(n):
        return tf.switch_case(n, [lambda: root.step, lambda: root.step * 3.0, lambda: 0.0])

    root.f, root.chosen = f, chosen
    return root, f


def requests(np):
    x = np.float32([9])
    return [
        ("serving_default", {"n": np.int32(3), "x": x}),
        ("chosen", (np.int32(1),), {}),
    ]
