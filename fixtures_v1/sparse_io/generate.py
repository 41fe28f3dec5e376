"""Sparse tensors (coo_sparse) in and out of a signature, beside dense ones."""

CLAUSES = ("V1-02",)
FEATURES = ("sparse_io", "sparse_ops", "ref_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.8"  # the builder of 1.4 refuses sparse tensors


def generate(tf, rec):
    a = tf.sparse_placeholder(tf.float32, [None, 3], "a")
    b = tf.sparse_placeholder(tf.float32, [None, 3], "b")
    ids = tf.sparse_placeholder(tf.int64, name="ids")
    w = tf.get_variable("w", initializer=rec.exact(3, 2))
    table = tf.get_variable("table", initializer=rec.exact(6, 2))
    total = tf.sparse_add(a, b)
    embedded = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"a": a, "b": b},
                {"sum": total, "product": tf.sparse_tensor_dense_matmul(a, w), "dense": tf.sparse_tensor_to_dense(total)},
            ),
            "embed": rec.signature({"ids": ids}, {"embedded": embedded, "transposed": tf.sparse_transpose(ids)}),
        },
    )
    one = ([[0, 0], [1, 2]], [1.0, 2.0], [2, 3])
    rec.ask("serving_default", {"a": one, "b": ([[0, 1]], [4.0], [2, 3])})
    rec.ask("serving_default", {"a": one, "b": ([], [], [2, 3])})
    rec.ask("embed", {"ids": ([[0, 0], [0, 1], [1, 0]], [1, 5, 2], [2, 2])})
