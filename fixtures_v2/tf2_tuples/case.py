"""Tuples and namedtuples as attributes, holding variables and modules (TF 2.1 and later).

The file records that they are tuples. `tf.saved_model.load` gives lists in their place.
"""

import collections

CLAUSES = ("PRIM-06",)
FEATURES = ("containers", "tuples")


def build(tf, work):
    pair = collections.namedtuple("Pair", ["left", "right"])
    root = tf.Module()
    child = tf.Module()
    child.v = tf.Variable(3.0)
    root.pair = (tf.Variable(1.0), child)
    root.named = pair(tf.Variable(5.0), (tf.Variable(7.0),))

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
    def read(x):
        product = root.named.left * root.named.right[0]
        return {"y": x * root.pair[0] + product * root.pair[1].v}

    root.read = read
    return root, read


def requests(np):
    x = np.float32(2)
    return [("serving_default", {"x": x}), ("read", (x,), {})]
