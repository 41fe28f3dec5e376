"""A warm-up request that the model cannot answer: the model works everywhere else, but a server
must refuse it.

The second record names an input that does not exist, as after a retraining that kept the old file
of requests.
"""

CLAUSES = ("GOAL-09", "COMPAT-05")
FEATURES = ("assets_extra", "warm-up", "serving", "refusal")
CHECKS = ("load", "values", "reexport")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)
    root.f = tf.function(
        lambda x: {"y": x * root.v}, input_signature=[tf.TensorSpec([None], tf.float32)]
    )
    return root, root.f


def warmup(np):
    return [
        ("predict", "serving_default", {"x": np.float32([1, 2])}),
        ("predict", "serving_default", {"features": np.float32([1, 2])}),
    ]


def requests(np):
    return [("serving_default", {"x": np.float32([1, 3])})]
