"""One node pinned to a GPU: a session without soft placement refuses the whole graph."""

CLAUSES = ("DEV-03",)
FEATURES = ("devices", "ref_variables")
RUNTIME = "tf1.15"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    with tf.device("/device:CPU:0"):
        a = tf.get_variable("a", initializer=3.0)
    with tf.device("/device:GPU:0"):
        y = tf.multiply(x, a, name="pinned")
    sess = rec.initialized_session(soft_placement=True)
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"x": x}, {"y": y}),
            "cpu_only": rec.signature({"x": x}, {"z": x + a}),
        },
    )
    rec.ask("serving_default", {"x": [1.0, 2.0]}, loaded_error="Cannot assign a device for operation")
    rec.ask("cpu_only", {"x": [1.0]}, loaded_error="Cannot assign a device for operation")
