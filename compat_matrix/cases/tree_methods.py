"""Inherited, own, static and `__call__` methods of two instances with their own traces.

The traces of a method belong to the instance; the loaded object is callable because `__call__` was
a tf.function.
"""

CLAUSES = ("FN-03", "FN-04", "REV-03", "METH-02")
FEATURES = ("methods",)


def build(tf, work):
    spec = [tf.TensorSpec([], tf.float32)]

    class Base(tf.Module):
        def __init__(self, scale):
            super().__init__()
            self.scale = tf.Variable(scale)

        @tf.function(input_signature=spec)
        def inherited(self, x):
            return x * self.scale

    class Derived(Base):
        @tf.function
        def own(self, x):
            return self.inherited(x) + 1.0

        @staticmethod
        @tf.function(input_signature=spec)
        def static(x):
            return x - 1.0

        @tf.function(input_signature=spec)
        def __call__(self, x):
            return x / self.scale

    root = tf.Module()
    root.a, root.b = Derived(2.0), Derived(4.0)
    root.a.own(tf.constant(1.0))
    root.b.own(tf.constant(1.0))
    return root


def requests(np):
    x = np.float32(8)
    paths = ["a.inherited", "b.inherited", "a.own", "b.own", "a.static", "a.__call__", "b.__call__"]
    return [(path, (x,), {}) for path in paths]
