"""A serving receiver with alternatives: serialized examples, raw features, and one feature fed from inside the graph."""

from fixtures_v1 import estimators

CLAUSES = ("V1-01", "COMPAT-03")
FEATURES = ("estimator", "receiver_alternatives", "parse_example")
RUNTIME = "tf1.14"
REQUIRES = "tensorflow>=1.12,<2.16"  # export_outputs may be left out after 1.8; tf.estimator went with 2.16


def generate(tf, rec):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", initializer=tf.constant(rec.exact(2)))
        y = tf.reduce_sum(features["x"] * w, 1) + features["bias"]
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"y": y})
        loss = tf.losses.mean_squared_error(labels, y)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.assign_add(tf.train.get_global_step(), 1))

    estimator = tf.estimator.Estimator(model_fn, config=estimators.run_config(tf))
    estimator.train(estimators.input_fn(tf, {"x": [[1.0, 2.0]], "bias": [0.0]}, [1.0], epochs=1))

    def receiver_fn():
        serialized = tf.placeholder(tf.string, [None], "serialized")
        features = tf.parse_example(
            serialized, {"x": tf.FixedLenFeature([2], tf.float32), "bias": tf.FixedLenFeature([], tf.float32, 0.5)}
        )
        return tf.estimator.export.ServingInputReceiver(
            features,
            serialized,
            {"raw": {"x": features["x"], "bias": features["bias"]}, "x_only": {"x": features["x"], "examples": serialized}},
        )

    estimators.export(tf, rec, estimator, receiver_fn)
    rows = [rec.example(x=[1.0, 2.0]), rec.example(x=[-1.0, 0.5], bias=[8.0])]
    rec.ask("serving_default", {"input": rows[:1]})
    rec.ask("serving_default", {"input": rows})
    rec.ask("raw:serving_default", {"x": [[3.0, 1.0]], "bias": [2.0]})
    rec.ask("x_only:serving_default", {"x": [[3.0, 1.0]], "examples": rows[1:]})
