"""RFC example: a Python value is an argument of the function, and the Python `__call__` around it
is not exported.

The literal decides which trace runs. `__call__` is not a tf.function; it would need a registered
type.
"""

CLAUSES = ("REV-01", "REV-02", "REV-06", "PY-06", "FN-04")
FEATURES = ("functions", "literals")


def build(tf, work):
    class HasPython(tf.Module):
        @tf.function
        def do(self, x, learning_phase):
            if learning_phase == 0:
                return x
            return x + 1.0

        def __call__(self, x):
            return self.do(x, learning_phase=1)

    has_python = HasPython()
    has_python.do(tf.constant(1.0), learning_phase=0)
    has_python(tf.constant(1.0))
    return has_python


def requests(np):
    x = np.float32(1)
    return [("do", (x,), {"learning_phase": 1}), ("do", (x,), {"learning_phase": 0})]
