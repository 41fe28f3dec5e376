"""Partitioned variables: rows of an embedding over three slices, columns over two, read whole and by embedding_lookup."""

CLAUSES = ("V1-08", "V1-15")
FEATURES = ("partitioned_variables", "ref_variables", "resource_variables", "embedding")
RUNTIME = "tf1.12"


def generate(tf, rec):
    rows = tf.get_variable("rows", initializer=tf.constant(rec.exact(7, 2)), partitioner=tf.fixed_size_partitioner(3))
    columns = tf.get_variable(
        "columns", initializer=tf.constant(rec.exact(2, 5)), partitioner=tf.fixed_size_partitioner(2, axis=1), use_resource=True
    )
    ids = tf.placeholder(tf.int64, [None], "ids")
    embedded = tf.nn.embedding_lookup(rows, ids, partition_strategy="div")
    y = tf.matmul(embedded, tf.convert_to_tensor(columns))
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({"ids": ids}, {"embedded": embedded, "y": y}),
            "whole": rec.signature({}, {"rows": tf.convert_to_tensor(rows)}),
        },
    )
    rec.ask("serving_default", {"ids": [6]})
    rec.ask("serving_default", {"ids": [0, 3, 4, 2]})
    rec.ask("serving_default", {"ids": []})
    rec.ask("whole", {})
