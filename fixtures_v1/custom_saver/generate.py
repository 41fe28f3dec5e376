"""A Saver of the user's own: renamed keys, only some of the variables; the others are set by main_op."""

CLAUSES = ("V1-08", "V1-15")
FEATURES = ("custom_saver", "main_op", "resource_variables", "renamed_keys")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.12"  # the builder takes no saver before


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    a = tf.get_variable("a", initializer=2.0, use_resource=True)
    b = tf.get_variable("b", initializer=3.0, use_resource=True)
    derived = tf.get_variable("derived", initializer=0.0, use_resource=True)
    derive = derived.assign(a.read_value() * b.read_value())
    saver = tf.train.Saver({"elsewhere/first": a, "elsewhere/second": b})
    sess = rec.initialized_session()
    sess.run(derive)
    rec.export(sess, {"serving_default": rec.signature({"x": x}, {"y": x * derived + a})}, main_op=derive.op, saver=saver)
    rec.ask("serving_default", {"x": [1.0]})
    rec.ask("serving_default", {"x": [0.5, -2.0]})
