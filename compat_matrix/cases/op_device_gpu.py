"""A GPU named inside the function of a signature, on a machine without one.

A session refuses a whole TF 1.x graph for one such node (the fixture `gpu_pinned`). A device named
inside a function is only a preference, so every consumer answers.
"""

CLAUSES = ("DEV-03", "GOAL-09")
FEATURES = ("devices", "serving")
CHECKS = ("load", "values")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def pinned(x):
        with tf.device("/device:GPU:0"):
            y = x * 3.0
        return {"y": y + root.v}

    root.pinned = pinned
    root.free = tf.function(
        lambda x: {"y": x + root.v}, input_signature=[tf.TensorSpec([2], tf.float32)]
    )
    return root, {"serving_default": pinned, "free": root.free}


def requests(np):
    x = np.float32([1, 3])
    return [("free", {"x": x}), ("serving_default", {"x": x})]
