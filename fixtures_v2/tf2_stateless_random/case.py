"""Numbers drawn from a seed in the request: the ops that draw them changed between releases."""

CLAUSES = ("RP-07",)
FEATURES = ("ops", "random")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([2], tf.int32, "seed")])
    def draw(seed):
        integers = tf.random.stateless_uniform([3], seed, 0, 1000, tf.int32)
        return {"integers": integers, "floats": tf.random.stateless_uniform([2], seed) * root.v}

    root.draw = draw
    return root, draw


def requests(np):
    return [("serving_default", {"seed": np.int32([1, 2])})]
