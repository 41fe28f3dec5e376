"""RFC example: a method creates its variable on the first call and has two concrete functions.

The arguments are Python numbers, as in the RFC: they are literals of the traces. `set` changes the
variable, and the later answers follow it.
"""

CLAUSES = ("METH-01", "METH-02", "METH-03", "FN-05")
FEATURES = ("functions", "methods", "literals")
STATEFUL = True


def build(tf, work):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.y = None

        @tf.function
        def add(self, x):
            if self.y is None:
                self.y = tf.Variable(2.0)
            return x + self.y

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def set(self, value):
            return self.y.assign(value)

    net = Net()
    net.add(3.0)
    net.add([3.0])
    return net


def requests(np):
    return [
        ("add", (3.0,), {}),
        ("add", ([3.0],), {}),
        ("set", (np.float32(3),), {}),
        ("add", (3.0,), {}),
        ("add", ([3.0],), {}),
    ]
