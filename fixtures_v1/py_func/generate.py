"""A py_func between two ordinary signatures: its Python callback lives in the exporting process only."""

CLAUSES = ("COMPAT-02",)
FEATURES = ("py_func",)
RUNTIME = "tf1.14"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    # The reloaded export answers because the recorder loads it in the process that holds the callback.
    y = tf.py_func(lambda value: value * value + 1, [x], tf.float32, stateful=False, name="callback")
    sess = rec.session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"x": x}, {"y": y}),
            "plain": rec.signature({"x": x}, {"z": x * 2.0}),
        },
    )
    rec.ask("serving_default", {"x": [1.0, 3.0]})
    rec.ask("plain", {"x": [1.0, 3.0]})
