"""Variables placed on two CPU devices, so that the checkpoint has two shards; devices cleared in the graph."""

CLAUSES = ("V1-08",)
FEATURES = ("sharded_checkpoint", "devices", "ref_variables", "resource_variables")
RUNTIME = "tf1.12"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 2], "x")
    with tf.device("/device:CPU:0"):
        w = tf.get_variable("w", initializer=rec.exact(2, 3))
    with tf.device("/device:CPU:1"):
        b = tf.get_variable("b", initializer=rec.exact(3), use_resource=True)
        names = tf.get_variable("names", initializer=tf.constant(["x", "yy", ""]))
    y = tf.matmul(x, w) + b
    sess = rec.session(cpus=2)
    sess.run(tf.global_variables_initializer())
    rec.export(sess, {"serving_default": rec.signature({"x": x}, {"y": y, "names": tf.identity(names)})}, clear_devices=True)
    rec.ask("serving_default", {"x": rec.exact(1, 2)})
    rec.ask("serving_default", {"x": rec.exact(3, 2)})
