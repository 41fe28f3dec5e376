"""RFC example: a variable created in a method, then assigned; loading gives the assigned value.

The example's `built` is set in `build`; otherwise the second trace would create a second variable.
`type(imported)()` as a way to create a new object (INIT-02) was never shipped and is not tested
here.
"""

CLAUSES = ("INIT-01", "METH-01")
FEATURES = ("functions", "methods", "literals")


def build(tf, work):
    class Net(tf.Module):
        def __init__(self, units):
            super().__init__()
            self.units = units
            self.var = None
            self.built = False

        def build(self, x):
            self.var = tf.Variable(x * tf.ones(self.units))
            self.built = True

        @tf.function
        def do(self, x):
            if not self.built:
                self.build(x)
            return x + self.var

    net = Net(5)
    net.do(1.0)
    net.var.assign([1.0, 2.0, 3.0, 4.0, 5.0])
    return net


def requests(np):
    return [("do", (1.0,), {})]
