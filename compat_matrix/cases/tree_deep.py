"""Eighty nested modules; the innermost ten have functions that call the next one.

Readers that recurse over the object graph or the function library must cope with depth.
"""

CLAUSES = ("RP-01", "RP-05", "FMT-01")
FEATURES = ("depth", "nested calls")


def build(tf, work):
    spec = [tf.TensorSpec([], tf.float32)]
    node = None
    for level in range(80):
        parent = tf.Module()
        parent.v = tf.Variable(float(level))
        parent.child = node
        if level < 10:
            parent.f = tf.function(_level(parent, node), input_signature=spec, autograph=False)
            parent.f(tf.constant(0.0))  # from the inside out, so that no trace is nested in another
            outermost = parent.f
        node = parent
    return node, outermost


def _level(parent, child):
    return lambda x: x + parent.v if child is None else child.f(x) + parent.v


def requests(np):
    x = np.float32(1)
    return [("serving_default", {"x": x}), ("child." * 70 + "f", (x,), {})]
