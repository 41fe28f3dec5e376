"""simple_save of two dense layers with resource variables."""

CLAUSES = ("V1-01", "V1-03", "V1-14")
FEATURES = ("simple_save", "resource_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.8"  # tf.saved_model.simple_save is not in 1.4


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 3], "x")
    with tf.variable_scope("dense", use_resource=True):
        w = tf.get_variable("kernel", initializer=rec.exact(3, 4))
        b = tf.get_variable("bias", initializer=rec.exact(4))
    with tf.variable_scope("out", use_resource=True):
        v = tf.get_variable("kernel", initializer=rec.exact(4, 2))
    y = tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), v, name="y")
    sess = rec.initialized_session()
    tf.saved_model.simple_save(sess, rec.model, {"x": x}, {"y": y})
    rec.live(sess)
    rec.ask("serving_default", {"x": rec.exact(1, 3)})
    rec.ask("serving_default", {"x": rec.exact(5, 3)})
    rec.ask("serving_default", {"x": rec.empty(0, 3)})
