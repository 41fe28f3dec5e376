"""A function that takes a variable as argument, called by another one with two different variables.

Variables as arguments are shared: both calls use one trace of the inner function.
"""

CLAUSES = ("FN-05", "FMT-05", "RES-04")
FEATURES = ("functions", "variables", "nested calls")
STATEFUL = True


def build(tf, work):
    root = tf.Module()
    root.a, root.b = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    bump = tf.function(lambda v, x: v.assign_add(x))

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def f(x):
        bump(root.a, x)
        bump(root.b, x * 2.0)
        return {"a": root.a.read_value(), "b": root.b.read_value()}

    root.f = f
    return root, f


def requests(np):
    return [("serving_default", {"x": np.float32([1, 1])}), ("f", (np.float32([1, 0]),), {})]
