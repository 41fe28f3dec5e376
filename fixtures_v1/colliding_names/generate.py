"""Names that nearly collide: reopened scopes, suffixes that look generated, variables below variables, one name in two graphs."""

CLAUSES = ("V1-08", "V1-15")
FEATURES = ("names", "ref_variables", "resource_variables")
RUNTIME = "tf1.12"
REQUIRES = "tensorflow>=1.12"  # auxiliary_name_scope and the use_resource of tf.Variable are later than 1.8


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    parts = [
        tf.Variable(1.0, name="w"),
        tf.Variable(2.0, name="w"),
        tf.Variable(4.0, name="w_1_1"),
        tf.Variable(8.0, name="w/w"),
        tf.Variable(16.0, name="W.-/w_1"),
    ]
    with tf.variable_scope("scope"):
        parts.append(tf.get_variable("w", initializer=32.0, use_resource=True))
    with tf.variable_scope("scope", auxiliary_name_scope=True):
        parts.append(tf.get_variable("v", initializer=64.0, use_resource=True))
    with tf.name_scope("scope"):
        parts.append(tf.Variable(128.0, name="w", use_resource=True))
    with tf.name_scope("x"):
        y = tf.add_n([x * part for part in parts], name="x")
    sess = rec.initialized_session()
    outputs = {part.op.name.replace("/", "|"): tf.identity(part) for part in parts}
    outputs["y"] = y
    rec.export(sess, {"serving_default": rec.signature({"x": x}, outputs)})
    rec.ask("serving_default", {"x": [1.0]})
    rec.ask("serving_default", {"x": [0.5, -2.0]})
