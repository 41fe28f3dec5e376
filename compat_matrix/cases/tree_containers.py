"""Lists and dicts of variables, modules and functions, nested in each other.

Any nesting of the primitives may be an attribute; functions in containers are found like functions
on attributes.
"""

CLAUSES = ("PRIM-05", "PRIM-06", "FN-02")
FEATURES = ("containers", "functions")


def build(tf, work):
    root = tf.Module()
    root.weights = [tf.Variable(1.0), tf.Variable([2.0, 3.0])]
    root.layers = {
        "b": [tf.Variable(4.0)],
        "a": {"deep": tf.Variable(5.0), "list": [[tf.Variable(6.0)]]},
    }
    root.empty = [[], {}]
    root.children = [tf.Module(), tf.Module()]
    for index, child in enumerate(root.children):
        child.v = tf.Variable(10.0 * (index + 1))

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def total(x):
        layers = root.layers
        parts = [
            root.weights[0],
            layers["b"][0],
            layers["a"]["deep"],
            layers["a"]["list"][0][0],
            *[c.v for c in root.children],
        ]
        # Each has its own factor, so that no two can be confused.
        return tf.add_n([part * 2.0**i for i, part in enumerate(parts)]) * x + root.weights[1]

    root.functions = {"total": total, "more": [tf.function(lambda x: x * root.weights[0])]}
    root.functions["more"][0](tf.constant(1.0))
    return root, {"total": total}


def requests(np):
    x = np.float32(2)
    return [("total", {"x": x}), ("functions.total", (x,), {}), ("functions.more.0", (x,), {})]
