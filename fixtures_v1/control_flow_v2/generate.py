"""Control flow v2 switched on in 1.15: functional While, If and Case ops with a function library and TensorLists."""

CLAUSES = ("V1-11", "FMT-14")
FEATURES = ("control_flow_v2", "while_loop", "cond", "function_library", "tensor_list")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.15"  # tf.enable_control_flow_v2


def generate(tf, rec):
    tf.enable_control_flow_v2()
    x = tf.placeholder(tf.float32, [None], "x")
    n = tf.placeholder(tf.int32, [], "n")
    a = tf.get_variable("a", initializer=tf.constant(2.0), use_resource=True)
    _, y = tf.while_loop(
        lambda i, _: i < n, lambda i, t: (i + 1, tf.cond(i < 2, lambda: t * a, lambda: t - 1.0)), [0, x], name="loop"
    )
    branch = tf.switch_case(n, [lambda: x, lambda: x + a], default=lambda: -x)
    gradient = tf.gradients(y, x, name="gradient")[0]
    mapped = tf.map_fn(lambda item: item * item, x)
    sess = rec.initialized_session()
    rec.export(
        sess,
        {"serving_default": rec.signature({"x": x, "n": n}, {"y": y, "branch": branch, "gradient": gradient, "mapped": mapped})},
    )
    for n_value in (0, 1, 4):
        rec.ask("serving_default", {"x": [1.0, -3.0], "n": n_value})
