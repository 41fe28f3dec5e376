"""Lists and dicts of variables, modules and functions, nested in each other."""

CLAUSES = ("PRIM-05", "PRIM-06", "FN-02")
FEATURES = ("containers", "functions")


def build(tf, work):
    root = tf.Module()
    root.weights = [tf.Variable(1.0), tf.Variable([2.0, 3.0])]
    root.layers = {"b": [tf.Variable(4.0)], "a": {"deep": tf.Variable(5.0)}}
    root.empty = [[], {}]
    root.children = [tf.Module()]
    root.children[0].v = tf.Variable(6.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
    def total(x):
        parts = [
            root.weights[0],
            root.layers["b"][0],
            root.layers["a"]["deep"],
            root.children[0].v,
        ]
        # Each has its own factor, so that no two can be confused.
        return {"y": tf.add_n([part * 2.0**i for i, part in enumerate(parts)]) * x}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
    def second(x):
        return root.weights[1] * x

    root.functions = {"total": total, "more": [second]}
    return root, {"serving_default": total}


def requests(np):
    x = np.float32(2)
    return [
        ("serving_default", {"x": x}),
        ("functions.more.0", (x,), {}),
    ]
