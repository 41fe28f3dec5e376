"""A single MetaGraph whose only tag is not `serve`."""

CLAUSES = ("V1-07",)
FEATURES = ("tag_sets", "ref_variables")
RUNTIME = "tf1.8"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    a = tf.Variable([2.0], name="a")
    sess = rec.initialized_session()
    rec.export(sess, {"predict": rec.signature({"x": x}, {"y": x * a})}, tags=("train", "eval"))
    rec.ask("predict", {"x": [1.0, 4.0]}, tags=("train", "eval"))
