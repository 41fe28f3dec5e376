"""A model that never answers: its signature loops forever.

The consumer must be stopped after its time limit, at the cost of one cell. No answer can be
recorded.
"""

CLAUSES = ("GOAL-09",)
FEATURES = ("fault", "control flow")
CHECKS = ("load", "signatures", "values")
UNANSWERED = ("hang",)
TIMEOUT = 2


def build(tf, work):
    root = tf.Module()
    root.fine = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([], tf.float32)])
    root.hang = tf.function(
        lambda x: tf.while_loop(lambda y: y == y, lambda y: [y + 0.0], [x])[0],
        input_signature=[tf.TensorSpec([], tf.float32)],
    )
    return root, {"fine": root.fine, "hang": root.hang}


def requests(np):
    return [("fine", {"x": np.float32(1)}), ("hang", {"x": np.float32(1)})]
