"""Sparse tensors as arguments and results, including an empty one."""

CLAUSES = ("PY-05", "PY-03", "FMT-05")
FEATURES = ("functions", "sparse")


def build(tf, work):
    root = tf.Module()
    root.matmul = tf.function(
        lambda s, d: {"dense": tf.sparse.sparse_dense_matmul(s, d), "same": s},
        input_signature=[
            tf.SparseTensorSpec([None, 3], tf.float32),
            tf.TensorSpec([3, 2], tf.float32),
        ],
    )
    root.concat = tf.function(
        lambda s: tf.sparse.concat(1, [s, s]),
        input_signature=[tf.SparseTensorSpec([None, None], tf.string)],
    )
    return root


def requests(np):
    dense = np.arange(6, dtype=np.float32).reshape(3, 2)
    some = {"$sparse": [np.int64([[0, 1], [1, 2]]), np.float32([2, 3]), np.int64([2, 3])]}
    none = {"$sparse": [np.zeros([0, 2], np.int64), np.float32([]), np.int64([2, 3])]}
    words = {"$sparse": [np.int64([[0, 0]]), np.array([b"w"], object), np.int64([1, 2])]}
    return [("matmul", (some, dense), {}), ("matmul", (none, dense), {}), ("concat", (words,), {})]
