"""Fifty functions with two traces each and forty variables, two of them in signatures.

The cost of loading should depend on what is used, not on what the file holds.
"""

CLAUSES = ("RP-07", "FN-02")
FEATURES = ("functions", "size")
CHECKS = ("load", "signatures", "values", "checkpoint")


def build(tf, work):
    root = tf.Module()
    root.variables_ = [tf.Variable(tf.fill([16], float(i))) for i in range(40)]
    root.functions = []
    for i in range(50):
        f = tf.function(_body(tf, root.variables_[i % 40], float(i)), autograph=False)
        for spec in (tf.TensorSpec([16]), tf.TensorSpec([None, 16])):
            f.get_concrete_function(spec)
        root.functions.append(f)
    spec = tf.TensorSpec([None, 16])
    return root, {
        "a": root.functions[3].get_concrete_function(spec),
        "b": root.functions[49].get_concrete_function(spec),
    }


def _body(tf, v, offset):
    return lambda x: tf.nn.relu(x * v + offset)


def requests(np):
    x = np.ones([2, 16], np.float32)
    return [("a", {"x": x}), ("b", {"x": x}), ("functions.7", (x[0],), {})]
