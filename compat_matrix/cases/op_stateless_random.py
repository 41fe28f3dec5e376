"""Stateless random numbers: the same seed must give the same integers in every consumer."""

CLAUSES = ("SIG-17", "ATTR-03")
FEATURES = ("ops", "random")
REQUIRES = "tensorflow>=2.10"  # tf.random.experimental.stateless_shuffle


def build(tf, work):
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([2], tf.int64)])
    def draw(seed):
        return {
            "uniform": tf.random.stateless_uniform(
                [4], seed, minval=0, maxval=1000, dtype=tf.int32
            ),
            "bits": tf.random.stateless_uniform(
                [3], seed, minval=None, maxval=None, dtype=tf.uint32
            ),
            "shuffled": tf.random.experimental.stateless_shuffle(tf.range(8), seed),
            "split": tf.random.experimental.stateless_split(seed, 2),
        }

    root.draw = draw
    return root, draw


def requests(np):
    return [("serving_default", {"seed": np.int64(seed)}) for seed in ([1, 2], [0, -5])]
