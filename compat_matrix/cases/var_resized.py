"""A variable of unknown shape whose value grew after its creation, and grows again after loading.

The checkpoint holds the last shape; the variable's declared shape must stay unknown.
"""

CLAUSES = ("RP-03", "PRIM-01", "GOAL-06")
FEATURES = ("variables", "shapes", "state")
STATEFUL = True


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([1.0], shape=tf.TensorShape([None]))
    root.v.assign([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def append(x):
        root.v.assign(tf.concat([root.v, x], 0))
        return root.v.read_value()

    root.append = append
    return root, append


def requests(np):
    return [("serving_default", {"x": np.float32([3])}), ("append", (np.float32([4, 5]),), {})]
