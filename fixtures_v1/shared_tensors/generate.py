"""Several signatures over the same tensors: one feeds what another fetches, one has no input, one echoes its input."""

CLAUSES = ("V1-01", "V1-02")
FEATURES = ("builder", "shared_tensors", "no_inputs")
RUNTIME = "tf1.15"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    w = tf.get_variable("w", initializer=tf.constant([1.0, 2.0, 4.0]))
    middle = tf.multiply(x, 3.0, name="middle")
    top = tf.add(middle, tf.reduce_sum(w), name="top")
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"x": x}, {"y": top}),
            "both": rec.signature({"x": x}, {"middle": middle, "top": top}),
            "from_middle": rec.signature({"m": middle}, {"top": top}),
            "constants": rec.signature({}, {"w": tf.identity(w)}),
            "echo": rec.signature({"x": x}, {"x": x, "y": top, "again": top}),
        },
    )
    for key in ("serving_default", "both", "echo"):
        rec.ask(key, {"x": [1.0]})
        rec.ask(key, {"x": [1.0, -2.0, 0.25]})
    rec.ask("from_middle", {"m": [10.0, 20.0]})
    rec.ask("constants", {})
