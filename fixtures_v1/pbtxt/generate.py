"""SavedModel as text: saved_model.pbtxt, with string constants that need escapes and floats at the edges."""

CLAUSES = ("V1-08",)
FEATURES = ("pbtxt", "ref_variables")
RUNTIME = "tf1.13"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    label = tf.constant(b'quote " backslash \\ newline \n byte \xff \x00 end', name="label")
    a = tf.get_variable("a", initializer=rec.exact(3))
    big = tf.constant([float("inf"), float("-inf"), float("nan"), 1e-45, 3.4e38], name="extremes")
    sess = rec.initialized_session()
    rec.export(
        sess,
        {"serving_default": rec.signature({"x": x}, {"y": x * tf.reduce_sum(a), "label": label, "extremes": big})},
        as_text=True,
    )
    rec.ask("serving_default", {"x": [1.0]})
    rec.ask("serving_default", {"x": [4.0, -8.0]})
