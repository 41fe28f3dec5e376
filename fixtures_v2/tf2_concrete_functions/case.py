"""Concrete functions as attributes, a captured constant, and an output with an odd name.

Later releases record how a concrete function is called with its structure (`function_spec`).
"""

CLAUSES = ("FN-12", "SIG-01", "SIG-04")
FEATURES = ("functions", "signatures", "constants")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    captured = tf.constant([10.0, 20.0])

    @tf.function
    def add(x, y=None):
        return x + root.v + captured if y is None else x + y["b"] * root.v

    x = tf.TensorSpec([2], tf.float32, "x")
    root.flat = add.get_concrete_function(x)
    root.nested = add.get_concrete_function(x, {"b": tf.TensorSpec([2], tf.float32, "b")})

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, "x")])
    def named(x):
        return {"sum": x + captured, "a/b": x * root.v}

    root.named = named
    return root, {"serving_default": root.flat, "nested": root.nested, "named": named}


def requests(np):
    x, b = np.float32([1, 2]), np.float32([3, 4])
    return [
        ("serving_default", {"x": x}),
        ("nested", {"x": x, "b": b}),
        ("named", {"x": x}),
        ("flat", (x,), {}),
    ]
