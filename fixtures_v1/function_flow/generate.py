"""Functions of the library (Defun) whose bodies have loops and branches in v1 control flow, one calling the other."""

CLAUSES = ("V1-11", "V1-14")
FEATURES = ("function_library", "defun", "v1_control_flow", "while_loop", "cond", "tensor_array")
RUNTIME = "tf1.15"
TOLERANCE = (1e-5, 1e-6, "tanh of sums, made by other kernels")


def generate(tf, rec):
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.int32, func_name="Repeat")
    def repeat(x, n):
        def body(i, a):
            return i + 1, tf.cond(tf.reduce_sum(a) > 0.0, lambda: tf.tanh(a) - 0.25, lambda: a * 0.5 + x)

        return tf.while_loop(lambda i, a: i < n, body, [0, x])[1]

    @function.Defun(tf.float32, tf.int32, func_name="Rows")
    def rows(x, n):
        return tf.map_fn(lambda row: repeat(row, n) * row, x)

    @function.Defun(tf.float32, tf.int32, func_name="Choose")
    def choose(x, n):
        return tf.cond(n > 1, lambda: repeat(x, n), lambda: x * x)

    x = tf.placeholder(tf.float32, [None, 2], "x")
    n = tf.placeholder(tf.int32, [], "n")
    w = tf.get_variable("w", initializer=rec.exact(2))
    step = lambda i, a: (i + 1, tf.reshape(choose(a * w, n), [-1, 2]))  # noqa: E731
    _, looped = tf.while_loop(lambda i, a: i < 2, step, [0, x])
    sess = rec.initialized_session()
    signature = rec.signature({"x": x, "n": n}, {"rows": rows(x * w, n), "choose": choose(x + w, n), "looped": looped})
    rec.export(sess, {"serving_default": signature})
    for count in (0, 1, 3):
        rec.ask("serving_default", {"x": rec.exact(3, 2), "n": count})
