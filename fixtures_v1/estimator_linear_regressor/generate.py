"""LinearRegressor exported by TF 1.4, sparse weights over a hashed and a vocabulary column."""

from fixtures_v1 import estimators

CLAUSES = ("V1-01", "COMPAT-03")
FEATURES = ("estimator", "feature_columns", "parse_example", "classify_regress", "legacy_init_op", "tables")
RUNTIME = "tf1.4"
REQUIRES = "tensorflow<2.16"  # tf.estimator went with 2.16
TOLERANCE = (1e-5, 1e-6, "trained weights; sums are ordered differently by newer kernels")


def generate(tf, rec):
    column = tf.feature_column
    columns = [
        column.numeric_column("x", shape=[2]),
        column.categorical_column_with_hash_bucket("city", 6),
        column.categorical_column_with_vocabulary_list("size", ["S", "M", "L"], default_value=1),
    ]
    estimator = tf.estimator.LinearRegressor(columns, config=estimators.run_config(tf))
    estimator.train(
        estimators.input_fn(
            tf, {"x": [[1.0, 2.0], [0.0, -1.0]], "city": [["Rome"], ["Oslo"]], "size": [["S"], ["L"]]}, [[1.0], [5.0]]
        )
    )
    estimators.export(
        tf, rec, estimator, tf.estimator.export.build_parsing_serving_input_receiver_fn(column.make_parse_example_spec(columns))
    )
    rows = [
        rec.example(x=[1.0, 1.0], city=["Rome"], size=["S"]),
        rec.example(x=[0.5, -2.0], city=["Lima", "Oslo"], size=["?"]),
        rec.example(x=[0.0, 0.0]),
    ]
    for key, name in (("serving_default", "inputs"), ("regression", "inputs"), ("predict", "examples")):
        rec.ask(key, {name: rows[:1]})
        rec.ask(key, {name: rows})
