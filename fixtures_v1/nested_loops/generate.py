"""A while_loop inside a cond inside a while_loop, with parallel_iterations 1 and an exit value captured from outside."""

CLAUSES = ("V1-11",)
FEATURES = ("v1_control_flow", "while_loop", "cond", "nested_control_flow")
RUNTIME = "tf1.12"


def generate(tf, rec):
    x = tf.placeholder(tf.int64, [], "x")
    n = tf.placeholder(tf.int64, [], "n")
    scale = tf.get_variable("scale", initializer=tf.constant(3, tf.int64), use_resource=True)

    def inner(i, total):
        return tf.while_loop(lambda j, _: j < i, lambda j, t: [j + 1, t + j * scale], [tf.constant(0, tf.int64), total])[1]

    def body(i, total):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: inner(i, total), lambda: total - x)

    _, y = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0, tf.int64), x], parallel_iterations=1)
    sess = rec.initialized_session()
    rec.export(sess, {"serving_default": rec.signature({"x": x, "n": n}, {"y": y})})
    for n_value in (0, 3, 8):
        rec.ask("serving_default", {"x": 5, "n": n_value})
