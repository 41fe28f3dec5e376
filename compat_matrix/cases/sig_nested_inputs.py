"""A signature whose arguments are a dict, a tuple and a sparse tensor.

The RFC forbids it, since a client cannot know the names; shipped TensorFlow flattens the arguments
to generated names. Such models exist and have to be readable.
"""

CLAUSES = ("SIG-13",)
FEATURES = ("signatures", "nests", "sparse")


def build(tf, work):
    root = tf.Module()
    scalar = tf.TensorSpec([], tf.float32)

    @tf.function(input_signature=[{"b": scalar, "a": scalar}, (scalar, scalar)])
    def nested(features, pair):
        return features["a"] * 1000.0 + features["b"] * 100.0 + pair[0] * 10.0 + pair[1]

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
    def sparse(s):
        return tf.sparse.to_dense(s)

    root.nested, root.sparse = nested, sparse
    answers = {
        "nested": lambda features, features_1, pair, pair_1: nested(
            {"a": features, "b": features_1}, (pair, pair_1)
        ),
        "sparse": lambda s, s_1, s_2: sparse(tf.SparseTensor(s, s_1, s_2)),
    }
    return root, {"nested": nested, "sparse": sparse}, answers


def requests(np):
    numbers = {
        "features": np.float32(1),
        "features_1": np.float32(2),
        "pair": np.float32(3),
        "pair_1": np.float32(4),
    }
    parts = {"s": np.int64([[0, 1], [1, 2]]), "s_1": np.float32([5, 6]), "s_2": np.int64([2, 3])}
    return [("nested", numbers), ("sparse", parts)]
