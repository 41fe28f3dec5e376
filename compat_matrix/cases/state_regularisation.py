"""Regularisation losses: a list of functions without arguments, reachable from the loaded
object.
"""

CLAUSES = ("GOAL-05", "GOAL-03", "FN-02")
FEATURES = ("functions", "containers")


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable([[1.0, 2.0], [2.0, 2.0]])
    root.b = tf.Variable([3.0], trainable=False)
    root.trainable_variables_ = [root.w]
    root.regularization_losses = [
        tf.function(lambda: tf.reduce_sum(root.w * root.w), input_signature=[]),
        tf.function(lambda: tf.reduce_sum(tf.abs(root.b)) * 0.5, input_signature=[]),
    ]
    root.f = tf.function(
        lambda x: tf.matmul(x, root.w) + root.b,
        input_signature=[tf.TensorSpec([None, 2], tf.float32)],
    )
    return root, root.f


def requests(np):
    return [
        ("serving_default", {"x": np.float32([[1, 1]])}),
        ("regularization_losses.0", (), {}),
        ("regularization_losses.1", (), {}),
    ]
