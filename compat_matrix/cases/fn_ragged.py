"""Ragged tensors as arguments and results, one and two levels deep."""

CLAUSES = ("PY-05", "PY-03", "FMT-05")
FEATURES = ("functions", "ragged")


def build(tf, work):
    root = tf.Module()
    root.double = tf.function(
        lambda r: r * 2.0, input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)]
    )
    root.sums = tf.function(
        lambda r: {"rows": tf.reduce_sum(r, axis=-1), "same": r},
        input_signature=[tf.RaggedTensorSpec([None, None, None], tf.int32, ragged_rank=2)],
    )
    root.split = tf.function(tf.strings.split, input_signature=[tf.TensorSpec([None], tf.string)])
    return root


def requests(np):
    one = {"$ragged": [np.float32([1, 2, 3]), np.int64([0, 2, 2, 3])]}
    two = {"$ragged": [np.int32([1, 2, 3, 4]), np.int64([0, 2, 3]), np.int64([0, 1, 3, 4])]}
    none = {"$ragged": [np.float32([]), np.int64([0])]}
    return [
        ("double", (one,), {}),
        ("double", (none,), {}),
        ("sums", (two,), {}),
        ("split", (np.array([b"a b", b"", b"c"], object),), {}),
    ]
