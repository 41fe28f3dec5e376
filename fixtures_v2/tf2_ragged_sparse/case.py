"""Ragged and sparse tensors as arguments and results of functions.

Their specs got new fields, and new names, between releases.
"""

CLAUSES = ("PY-05", "PY-03", "FMT-05")
FEATURES = ("functions", "ragged", "sparse")


def build(tf, work):
    root = tf.Module()
    ragged = tf.RaggedTensorSpec([None, None], tf.float32)

    @tf.function(input_signature=[ragged])
    def double(r):
        return r * 2.0

    specs = [tf.SparseTensorSpec([None, 2], tf.float32), tf.TensorSpec([2, 2], tf.float32)]

    @tf.function(input_signature=specs)
    def matmul(s, d):
        return {"dense": tf.sparse.sparse_dense_matmul(s, d), "same": s}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def lengths(text):
        return {"lengths": tf.strings.split(text).row_lengths()}

    root.double, root.matmul, root.lengths = double, matmul, lengths
    return root, lengths


def requests(np):
    ragged = {"$ragged": [np.float32([1, 2, 3]), np.int64([0, 2, 2, 3])]}
    sparse = {"$sparse": [np.int64([[0, 1], [1, 0]]), np.float32([2, 3]), np.int64([2, 2])]}
    dense = np.float32([[1, 2], [3, 4]])
    return [
        ("serving_default", {"text": np.array([b"a b", b"", b"c"], object)}),
        ("double", (ragged,), {}),
        ("matmul", (sparse, dense), {}),
    ]
