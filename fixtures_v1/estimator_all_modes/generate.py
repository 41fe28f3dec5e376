"""experimental_export_all_saved_models: train, eval and serve MetaGraphs of one Estimator, each with its own receiver."""

from fixtures_v1 import estimators

CLAUSES = ("V1-04", "V1-05", "COMPAT-03")
FEATURES = ("estimator", "multi_metagraph", "train_op", "metrics", "local_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.13,<2.16"  # the method came after 1.12; tf.estimator went with 2.16
UNASKED = {"eval": "fetches a metric's value and its update in one run, and nothing orders the two"}
TOLERANCE = (1e-5, 1e-6, "trained weights; sums are ordered differently by newer kernels")


def generate(tf, rec):
    def model_fn(features, labels, mode):
        y = tf.layers.dense(features["x"], 1, kernel_initializer=tf.constant_initializer(rec.exact(2)))[:, 0]
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"y": y})
        labels = labels["label"] if isinstance(labels, dict) else labels
        loss = tf.losses.mean_squared_error(labels, y)
        train_op = tf.train.GradientDescentOptimizer(0.125).minimize(loss, tf.train.get_global_step())
        metrics = {"error": tf.metrics.mean_absolute_error(labels, y)} if mode == tf.estimator.ModeKeys.EVAL else None
        return tf.estimator.EstimatorSpec(mode, {"y": y}, loss, train_op, metrics)

    estimator = tf.estimator.Estimator(model_fn, config=estimators.run_config(tf))
    estimator.train(estimators.input_fn(tf, {"x": [[1.0, 2.0], [0.0, 1.0]]}, [1.0, 0.5]))

    def serving():
        features = {"x": tf.placeholder(tf.float32, [None, 2], "x")}
        return tf.estimator.export.ServingInputReceiver(features, features)

    def supervised():
        return tf.estimator.experimental.build_raw_supervised_input_receiver_fn(
            {"x": tf.placeholder(tf.float32, [None, 2])}, {"label": tf.placeholder(tf.float32, [None])}
        )()

    modes = tf.estimator.ModeKeys
    estimators.export_modes(tf, rec, estimator, {modes.PREDICT: serving, modes.TRAIN: supervised, modes.EVAL: supervised})
    rec.ask("serving_default", {"x": [[1.0, 2.0]]})
    rec.ask("serving_default", {"x": [[1.0, 2.0], [0.5, -1.0], [0.0, 0.0]]})
    for _ in range(2):
        rec.ask("train", {"x": [[1.0, 2.0]], "label": [0.5]}, tags=("train",))
