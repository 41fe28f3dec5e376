"""A frozen graph: every variable folded into a constant, nothing in variables/."""

CLAUSES = ("V1-01",)
FEATURES = ("no_variables", "constants_only")
RUNTIME = "tf1.4"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 3], "x")
    w = tf.Variable(rec.exact(3, 2), name="w")
    tf.nn.relu(tf.matmul(x, w), name="y")
    sess = rec.initialized_session()
    frozen = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ["y"])
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(frozen, name="")
        sess = rec.session()
        x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
        rec.export(sess, {"serving_default": rec.signature({"x": x}, {"y": y})})
    rec.ask("serving_default", {"x": rec.exact(1, 3)})
    rec.ask("serving_default", {"x": rec.exact(4, 3)})
