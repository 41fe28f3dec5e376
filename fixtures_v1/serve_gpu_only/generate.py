"""One MetaGraph with the tags `serve` and `gpu`, as a training job on GPUs exports it: `serve` alone finds nothing."""

CLAUSES = ("V1-05", "V1-07")
FEATURES = ("tag_sets", "resource_variables", "serving")
RUNTIME = "tf1.15"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 2], "x")
    w = tf.get_variable("w", initializer=tf.constant(rec.exact(2, 3)), use_resource=True)
    sess = rec.initialized_session()
    rec.export(sess, {"serving_default": rec.signature({"x": x}, {"y": tf.matmul(x, w)})}, tags=("serve", "gpu"))
    rec.ask("serving_default", {"x": rec.exact(3, 2)}, tags=("serve", "gpu"))
