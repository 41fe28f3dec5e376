"""A v1 AdamOptimizer with slots on a module.

The slots are recorded in the object graph. Shipped TensorFlow cannot load its own export:
`add_slot` belongs to a class that only tf_keras registers. Session readers are not affected.
"""

CLAUSES = ("OPT-01", "OPT-02", "V1-18")
FEATURES = ("optimizer", "slots")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    root.optimizer = tf.compat.v1.train.AdamOptimizer(0.5)
    root.optimizer.apply_gradients([(tf.constant([1.0, -1.0]), root.v)])
    root.v.assign([3.0, 4.0])
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([2], tf.float32)])
    return root, root.f


def requests(np):
    x = np.float32([1, 2])
    return [("serving_default", {"x": x}), ("f", (x,), {})]
