"""cond, case and switch_case, nested, on captured variables; a branch with a side effect runs only
when taken.
"""

CLAUSES = ("RP-07", "COMPAT-05")
FEATURES = ("control flow", "state")
STATEFUL = True


def build(tf, work):
    root = tf.Module()
    root.v, root.hits = tf.Variable(10.0), tf.Variable(0)

    def count(value):
        root.hits.assign_add(1)
        return value

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def choose(x):
        nested = tf.cond(
            x > 0.0,
            lambda: tf.cond(x > 5.0, lambda: count(x * root.v), lambda: x + root.v),
            lambda: -x,
        )
        index = tf.cast(tf.abs(x), tf.int32)
        switched = tf.switch_case(
            index, [lambda: root.v + 0.0, lambda: x], default=lambda: tf.constant(-1.0)
        )
        cased = tf.case([(x < 0.0, lambda: 1), (x > 5.0, lambda: 2)], default=lambda: 3)
        return {
            "nested": nested,
            "switched": switched,
            "cased": cased,
            "hits": root.hits.read_value(),
        }

    root.choose = choose
    return root, choose


def requests(np):
    return [("serving_default", {"x": np.float32(x)}) for x in (6, 1, -1, 0, 7)]
