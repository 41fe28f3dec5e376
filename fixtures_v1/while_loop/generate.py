"""A while_loop in v1 control flow (Enter, Exit, NextIteration, Switch, Merge), with a variable inside the body."""

CLAUSES = ("V1-11",)
FEATURES = ("v1_control_flow", "while_loop", "ref_variables", "while_context")
RUNTIME = "tf1.15"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    n = tf.placeholder(tf.int32, [], "n")
    step = tf.get_variable("step", initializer=tf.constant(0.5))

    def body(i, total):
        return i + 1, total * 2.0 + step

    count, y = tf.while_loop(lambda i, total: i < n, body, [tf.constant(0), x], name="loop")
    sess = rec.initialized_session()
    rec.export(sess, {"serving_default": rec.signature({"x": x, "n": n}, {"y": y, "count": count})})
    for n_value in (0, 1, 7):
        rec.ask("serving_default", {"x": [1.0, -3.0], "n": n_value})
    rec.ask("serving_default", {"x": rec.empty(0), "n": 3})
