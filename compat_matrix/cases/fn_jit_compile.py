"""A function compiled by XLA, and one that calls it.

The attribute `_XlaMustCompile` is in the FunctionDef; every consumer must be able to compile.
"""

import inspect

CLAUSES = ("RP-07", "FMT-03")
FEATURES = ("functions", "xla")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    spec = [tf.TensorSpec([None, 2], tf.float32)]
    known = inspect.signature(tf.function).parameters
    compiled = {
        "jit_compile" if "jit_compile" in known else "experimental_compile": True
    }  # the name until 2.5
    root.compiled = tf.function(
        lambda x: tf.reduce_sum(x * root.v, axis=1), input_signature=spec, **compiled
    )
    root.outer = tf.function(lambda x: root.compiled(x) + 1.0, input_signature=spec)
    return root, {"compiled": root.compiled, "outer": root.outer}


def requests(np):
    x = np.float32([[1, 2], [3, 4]])
    return [("compiled", {"x": x}), ("outer", {"x": x}), ("compiled", (x,), {})]
