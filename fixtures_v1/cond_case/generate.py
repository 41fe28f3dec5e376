"""cond and case in v1 control flow (Switch, Merge), with a resource and a reference variable read inside the branches."""

CLAUSES = ("V1-11",)
FEATURES = ("v1_control_flow", "cond", "case", "cond_context")
RUNTIME = "tf1.13"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    double = tf.placeholder(tf.bool, [], "double")
    kind = tf.placeholder(tf.int32, [], "kind")
    a = tf.get_variable("a", initializer=tf.constant(2.0), use_resource=False)
    b = tf.get_variable("b", initializer=tf.constant(0.5), use_resource=True)
    y = tf.cond(double, lambda: x * a, lambda: tf.cond(tf.greater(tf.size(x), 2), lambda: x - b, lambda: x + b))
    z = tf.case(
        [(tf.equal(kind, 0), lambda: x), (tf.equal(kind, 1), lambda: tf.square(x) + b)],
        default=lambda: tf.fill(tf.shape(x), -1.0),
        exclusive=True,
    )
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"x": x, "double": double}, {"y": y}),
            "case": rec.signature({"x": x, "kind": kind}, {"z": z}),
        },
    )
    rec.ask("serving_default", {"x": [1.0], "double": True})
    rec.ask("serving_default", {"x": [1.0, 2.0], "double": False})
    rec.ask("serving_default", {"x": [1.0, 2.0, 3.0], "double": False})
    for kind_value in (0, 1, 2):
        rec.ask("case", {"x": [1.0, -3.0], "kind": kind_value})
