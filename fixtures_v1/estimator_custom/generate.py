"""A custom Estimator with reference variables, a raw receiver of two tensors, assets.extra and a vocabulary (TF 1.12)."""

from fixtures_v1 import estimators
from fixtures_v1.lookup import lookup

CLAUSES = ("V1-10", "V1-12", "COMPAT-03")
FEATURES = ("estimator", "ref_variables", "assets_extra", "tables", "assets", "optimizer_slots")
RUNTIME = "tf1.12"
REQUIRES = "tensorflow>=1.12,<2.16"  # export_outputs may be left out after 1.8; tf.estimator went with 2.16
TOLERANCE = (1e-5, 1e-6, "trained weights and tanh")


def generate(tf, rec):
    path = rec.file("vocabulary.txt", "one\ntwo\nthree\n")

    def model_fn(features, labels, mode):
        ids = lookup(tf).index_table_from_file(path, num_oov_buckets=1).lookup(features["word"])
        embedding = tf.get_variable("embedding", initializer=tf.constant(rec.exact(4, 3)))
        hidden = tf.layers.dense(
            tf.nn.embedding_lookup(embedding, ids) * features["x"],
            2,
            tf.tanh,
            kernel_initializer=tf.constant_initializer(rec.exact(3, 2)),
        )
        y = tf.reduce_sum(hidden, 1)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"y": y, "hidden": hidden})
        loss = tf.losses.mean_squared_error(labels, y)
        train_op = tf.train.AdamOptimizer(0.125).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = tf.estimator.Estimator(model_fn, config=estimators.run_config(tf))
    estimator.train(estimators.input_fn(tf, {"word": ["one", "four"], "x": [[1.0], [2.0]]}, [1.0, -1.0]))

    def receiver_fn():
        features = {"word": tf.placeholder(tf.string, [None], "word"), "x": tf.placeholder(tf.float32, [None, 1], "x")}
        return tf.estimator.export.ServingInputReceiver(features, features)

    warmup = rec.file("requests.txt", "a request to warm up with\n")
    extra = {"tf_serving_warmup_requests": warmup, "more/readme.txt": warmup}
    estimators.export(tf, rec, estimator, receiver_fn, assets_extra=extra)
    rec.ask("serving_default", {"word": ["two"], "x": [[0.5]]})
    rec.ask("serving_default", {"word": ["one", "many", "three"], "x": [[0.5], [1.0], [-1.0]]})
