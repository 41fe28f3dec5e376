"""A local variable nobody initialises after loading: the session answers one signature and not the other."""

CLAUSES = ("V1-08",)
FEATURES = ("local_variables", "no_init_op")
RUNTIME = "tf1.13"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    a = tf.get_variable("a", initializer=2.0)
    local = tf.get_variable("local", initializer=4.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"x": x}, {"y": x * a}),
            "with_local": rec.signature({"x": x}, {"y": x * local}),
        },
    )
    rec.ask("serving_default", {"x": [1.0, 3.0]})
    rec.ask("with_local", {"x": [1.0, 3.0]}, loaded_error="uninitialized value local")
