"""Functions calling functions: shared inner ones, a diamond, and one that is called with two
shapes.

Only one of the inner functions is in the object graph; the library must hold them all.
"""

CLAUSES = ("FN-02", "FN-11", "RP-07", "SIG-15")
FEATURES = ("functions", "nested calls")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)
    inner = tf.function(lambda x: x * root.v)
    left = tf.function(lambda x: inner(x) + 1.0)
    right = tf.function(lambda x: inner(x) - 1.0)
    root.both = tf.function(
        lambda x: left(x) + right(x) + tf.reduce_sum(inner(tf.stack([x, x]))),
        input_signature=[tf.TensorSpec([], tf.float32)],
    )
    chain = [inner]
    for _ in range(12):
        chain.append(tf.function(lambda x, below=chain[-1]: below(x) + 1.0))
    root.chain = tf.function(
        lambda x: chain[-1](x), input_signature=[tf.TensorSpec([None], tf.float32)]
    )
    root.inner = inner
    return root, {"both": root.both, "chain": root.chain}


def requests(np):
    return [
        ("both", {"x": np.float32(3)}),
        ("chain", {"x": np.float32([1, 2])}),
        ("inner", (np.float32(5),), {}),
    ]
