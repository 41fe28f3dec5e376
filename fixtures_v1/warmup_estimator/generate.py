"""An Estimator exported with requests for TensorFlow Serving to warm up with: predict, classify, regress and multi-inference."""

from fixtures_v1 import estimators

CLAUSES = ("V1-01", "COMPAT-03")
FEATURES = ("estimator", "export_outputs", "classify_regress", "multi_inference", "assets_extra", "warm-up", "serving")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow<2.16"  # tf.estimator went with 2.16


def generate(tf, rec):
    def model_fn(features, labels, mode):
        scores = tf.matmul(features["x"], tf.get_variable("w", initializer=tf.constant(rec.exact(2, 3)), use_resource=True))
        if mode == tf.estimator.ModeKeys.PREDICT:
            output = tf.estimator.export
            return tf.estimator.EstimatorSpec(
                mode,
                predictions={"best": tf.argmax(scores, 1)},
                export_outputs={
                    "serving_default": output.PredictOutput({"scores": scores}),
                    "scores": output.ClassificationOutput(scores=scores),
                    "first": output.RegressionOutput(scores[:, 0]),
                },
            )
        loss = tf.losses.sparse_softmax_cross_entropy(labels, scores)
        train_op = tf.train.GradientDescentOptimizer(0.0).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = tf.estimator.Estimator(model_fn, config=estimators.run_config(tf))
    estimator.train(estimators.input_fn(tf, {"x": [[1.0, 2.0]]}, [1], epochs=1))
    rows = [rec.example(x=[1.0, 2.0]), rec.example(x=[-1.0, 0.5])]
    extra = rec.warmup(
        ("predict", "serving_default", {"examples": rows}),
        ("classify", "scores", rows),
        ("regress", "first", rows[:1]),
        ("multi_inference", [("classify", "scores"), ("regress", "first")], rows),
    )
    receiver_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn({"x": tf.FixedLenFeature([2], tf.float32)})
    estimators.export(tf, rec, estimator, receiver_fn, **extra)
    for key, name in (("serving_default", "examples"), ("scores", "inputs"), ("first", "inputs")):
        rec.ask(key, {name: rows[:1]})
        rec.ask(key, {name: rows})
