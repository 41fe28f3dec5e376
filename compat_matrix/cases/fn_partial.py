"""`functools.partial` and bound methods turned into functions: bound values are part of the
export.
"""

import functools

CLAUSES = ("PY-09", "FN-02", "PY-06")
FEATURES = ("functions", "arguments")


def build(tf, work):
    class Scaler(object):  # not a tf.Module: the bound object itself is not exported
        factor = 4.0

        def scale(self, x, offset=1.0):
            return x * self.factor + offset

    def affine(x, a, b=2.0, negate=False):
        return -(x * a + b) if negate else x * a + b

    root = tf.Module()
    root.keyword = tf.function(functools.partial(affine, a=3.0, negate=True))
    root.keyword(tf.constant(1.0))
    root.bound = tf.function(Scaler().scale)
    root.bound(tf.constant(1.0))
    root.bound(tf.constant(1.0), offset=tf.constant(0.0))
    return root


def requests(np):
    x = np.float32(5)
    return [
        ("keyword", (x,), {}),
        ("bound", (x,), {}),
        ("bound", (x, 1.0), {}),
        ("bound", (x,), {"offset": np.float32(10)}),
    ]
