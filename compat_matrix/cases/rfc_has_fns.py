"""RFC example: functions on attributes that were called, given a signature, or called by another
function.

`a` and `b` have been called, `c` has an input signature and was never called, `c_dep` was traced by
`c`.
"""

CLAUSES = ("FN-02", "FN-05", "FN-10", "FN-11", "FN-12")
FEATURES = ("functions",)


def build(tf, work):
    has_fns = tf.Module()
    has_fns.v = tf.Variable(1.0)
    has_fns.a = tf.function(lambda x: x + has_fns.v + 1.0)
    has_fns.b = tf.function(lambda x: x + has_fns.v + 2.0)
    has_fns.c_dep = tf.function(lambda x: x + 3.0)
    has_fns.c = tf.function(
        lambda x: has_fns.v + has_fns.c_dep(x),
        input_signature=(tf.TensorSpec(shape=[None], dtype=tf.float32),),
    )
    has_fns.a(tf.constant(2.0))
    has_fns.b(tf.constant(3.0))
    return has_fns


def requests(np):
    return [
        ("a", (np.float32(1),), {}),
        ("b", (np.float32(1),), {}),
        ("c", (np.float32([1, 2]),), {}),
        ("c_dep", (np.float32([1]),), {}),
    ]
