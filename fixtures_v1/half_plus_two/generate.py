"""Half plus two: reference variables, SavedModelBuilder, predict, classify and regress signatures over tf.Example."""

CLAUSES = ("V1-01", "V1-02", "V1-08", "V1-10")
FEATURES = ("builder", "ref_variables", "parse_example", "classify_regress")
RUNTIME = "tf1.15"


def generate(tf, rec):
    a, b = tf.Variable(0.5, name="a"), tf.Variable(2.0, name="b")
    serialized = tf.placeholder(tf.string, [None], "tf_example")
    features = tf.parse_example(serialized, {"x": tf.FixedLenFeature([1], tf.float32)})
    x = tf.identity(features["x"], name="x")
    y = tf.add(tf.multiply(a, x), b, name="y")
    labels = tf.tile(tf.constant([["low", "high"]]), [tf.shape(y)[0], 1], name="labels")
    scores = tf.concat([y, y + 1.0], 1, name="scores")
    sess = rec.initialized_session()
    signatures = tf.saved_model.signature_def_utils
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"x": x}, {"y": y}),
            "regress_x_to_y": signatures.regression_signature_def(serialized, y),
            "classify_x_to_y": signatures.classification_signature_def(serialized, labels, scores),
        },
    )
    rec.ask("serving_default", {"x": [[1.0]]})
    rec.ask("serving_default", {"x": [[1.0], [2.0], [-4.5]]})
    rec.ask("serving_default", {"x": rec.empty(0, 1)})
    for key in ("regress_x_to_y", "classify_x_to_y"):
        rec.ask(key, {"inputs": [rec.example(x=[1.0])]})
        rec.ask(key, {"inputs": [rec.example(x=[3.0]), rec.example(x=[-1.0])]})
