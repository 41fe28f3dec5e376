"""A custom Estimator with several export_outputs: predict, classify and regress signatures, one of them the default."""

from fixtures_v1 import estimators

CLAUSES = ("V1-01", "V1-02", "COMPAT-03")
FEATURES = ("estimator", "export_outputs", "classify_regress", "resource_variables")
RUNTIME = "tf1.13"
REQUIRES = "tensorflow>=1.8,<2.16"  # a PredictOutput of a single tensor; tf.estimator went with 2.16
TOLERANCE = (1e-5, 1e-6, "softmax")


def generate(tf, rec):
    def model_fn(features, labels, mode):
        with tf.variable_scope("model", use_resource=True):
            logits = tf.matmul(features["x"], tf.get_variable("w", initializer=tf.constant(rec.exact(2, 3))))
        scores = tf.nn.softmax(logits)
        best = tf.argmax(scores, 1)
        names = tf.tile([["red", "green", "blue"]], [tf.shape(logits)[0], 1])
        if mode == tf.estimator.ModeKeys.PREDICT:
            output = tf.estimator.export
            return tf.estimator.EstimatorSpec(
                mode,
                predictions={"best": best},
                export_outputs={
                    tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: output.PredictOutput({"best": best}),
                    "logits": output.PredictOutput(logits),
                    "class": output.ClassificationOutput(scores, names),
                    "scores_only": output.ClassificationOutput(scores=scores),
                    "first": output.RegressionOutput(logits[:, 0]),
                },
            )
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train_op = tf.train.GradientDescentOptimizer(0.0).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = tf.estimator.Estimator(model_fn, config=estimators.run_config(tf))
    estimator.train(estimators.input_fn(tf, {"x": [[1.0, 2.0]]}, [1], epochs=1))
    spec = {"x": tf.FixedLenFeature([2], tf.float32)}
    estimators.export(tf, rec, estimator, tf.estimator.export.build_parsing_serving_input_receiver_fn(spec))
    rows = [rec.example(x=[1.0, 2.0]), rec.example(x=[-1.0, 0.5])]
    for key, name in (
        ("serving_default", "examples"),
        ("logits", "examples"),
        ("class", "inputs"),
        ("scores_only", "inputs"),
        ("first", "inputs"),
    ):
        rec.ask(key, {name: rows[:1]})
        rec.ask(key, {name: rows})
