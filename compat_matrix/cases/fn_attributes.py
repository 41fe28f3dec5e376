"""Attributes on functions (`experimental_implements`, compile off) and a side effect whose order
counts.
"""

import inspect

CLAUSES = ("RP-07", "METH-03")
FEATURES = ("functions", "state")
STATEFUL = True
REQUIRES = "tensorflow>=2.1"  # experimental_implements


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(1.0)
    spec = [tf.TensorSpec([], tf.float32)]
    root.implements = tf.function(
        lambda x, y: x + y, input_signature=spec * 2, experimental_implements="lab.add_v"
    )

    known = inspect.signature(tf.function).parameters
    off = {
        "jit_compile" if "jit_compile" in known else "experimental_compile": False
    }  # the name until 2.5

    @tf.function(input_signature=spec, **off)
    def ordered(x):
        before = root.v.read_value()
        root.v.assign(root.implements(x, before))
        middle = root.v.read_value()
        root.v.assign_add(100.0)
        tf.debugging.assert_greater(root.v, before)
        return [before, middle, root.v.read_value()]

    root.ordered = ordered
    return root, ordered


def requests(np):
    return [
        ("serving_default", {"x": np.float32(2)}),
        ("serving_default", {"x": np.float32(0)}),
        ("implements", (np.float32(1), np.float32(2)), {}),
    ]
