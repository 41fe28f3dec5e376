"""BoostedTreesClassifier: the trees live in a resource of their own, saved as serialized protos."""

from fixtures_v1 import estimators

CLAUSES = ("COMPAT-02", "COMPAT-03")
FEATURES = ("estimator", "boosted_trees", "feature_columns", "custom_resource", "parse_example", "removed_op")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.12,<2.9"  # its labels are to be float32 in 1.8; it went with the Estimator of 2.9
TOLERANCE = (1e-5, 1e-6, "trained weights and logistic function")


def generate(tf, rec):
    column = tf.feature_column
    columns = [column.bucketized_column(column.numeric_column(name), [0.0, 1.0, 2.0]) for name in ("x", "y")]
    estimator = tf.estimator.BoostedTreesClassifier(
        columns, n_batches_per_layer=1, n_trees=2, max_depth=2, config=estimators.run_config(tf)
    )
    estimator.train(
        estimators.input_fn(
            tf, {"x": [[0.5], [1.5], [-1.0], [3.0]], "y": [[0.5], [0.5], [2.5], [1.5]]}, [[0], [1], [0], [1]], epochs=8
        )
    )
    estimators.export(
        tf, rec, estimator, tf.estimator.export.build_parsing_serving_input_receiver_fn(column.make_parse_example_spec(columns))
    )
    rows = [rec.example(x=[0.25], y=[1.5]), rec.example(x=[9.0], y=[-1.0]), rec.example(x=[1.25], y=[0.0])]
    for key, name in (
        ("serving_default", "inputs"),
        ("classification", "inputs"),
        ("regression", "inputs"),
        ("predict", "examples"),
    ):
        rec.ask(key, {name: rows[:1]})
        rec.ask(key, {name: rows})
