"""DNNClassifier with numeric, bucketized, vocabulary-file, embedded and crossed feature columns."""

from fixtures_v1 import estimators

CLAUSES = ("V1-01", "V1-02", "V1-12", "COMPAT-03")
FEATURES = ("estimator", "feature_columns", "tables", "assets", "parse_example", "classify_regress", "partitioned_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow<2.16"  # tf.estimator went with 2.16
TOLERANCE = (1e-5, 1e-6, "trained weights, matmul and softmax: sums are ordered differently by newer kernels")


def generate(tf, rec):
    column = tf.feature_column
    age = column.numeric_column("age")
    colour = column.categorical_column_with_vocabulary_file(
        "colour", rec.file("colours.txt", "red\ngreen\nblue\n"), vocabulary_size=3, num_oov_buckets=1
    )
    buckets = column.bucketized_column(age, [10.0, 50.0])
    columns = [
        age,
        buckets,
        column.embedding_column(colour, 2),
        column.indicator_column(column.crossed_column([buckets, "colour"], 5)),
        column.indicator_column(column.categorical_column_with_vocabulary_list("size", ["S", "M", "L"])),
    ]
    estimator = tf.estimator.DNNClassifier(
        [4], columns, n_classes=3, label_vocabulary=["cat", "dog", "bird"], config=estimators.run_config(tf)
    )
    estimator.train(
        estimators.input_fn(
            tf,
            {"age": [[4.0], [30.0], [70.0]], "colour": [["red"], ["pink"], ["blue"]], "size": [["S"], ["L"], ["M"]]},
            [["cat"], ["dog"], ["bird"]],
        )
    )
    estimators.export(
        tf, rec, estimator, tf.estimator.export.build_parsing_serving_input_receiver_fn(column.make_parse_example_spec(columns))
    )
    rows = [
        rec.example(age=[12.0], colour=["green"], size=["S"]),
        rec.example(age=[77.0], colour=["violet"], size=["XXL"]),
        rec.example(age=[1.0], colour=["red", "blue"]),
    ]
    for key, name in (("serving_default", "inputs"), ("classification", "inputs"), ("predict", "examples")):
        rec.ask(key, {name: rows[:1]})
        rec.ask(key, {name: rows})
