"""Signatures without any input, one of them without any output.

There is nothing to feed; a runner that requires a feed or a fetch cannot call them.
"""

CLAUSES = ("SIG-11", "SIG-15", "SIG-17")
FEATURES = ("signatures", "empty")
STATEFUL = True


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    root.read = tf.function(lambda: {"v": root.v.read_value()}, input_signature=[])
    root.constant = tf.function(lambda: tf.constant([7]), input_signature=[])

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def write(value):
        root.v.assign(value)
        return {}

    root.write = write
    return root, {"read": root.read, "constant": root.constant, "write": write}


def requests(np):
    return [("read", {}), ("constant", {}), ("write", {"value": np.float32([3, 4])})]
