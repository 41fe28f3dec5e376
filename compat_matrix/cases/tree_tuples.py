"""Tuples and namedtuples as attributes, holding variables and modules.

The file records that they are tuples; shipped TensorFlow revives them as lists.
"""

import collections

CLAUSES = ("PRIM-06",)
FEATURES = ("containers", "tuples")


def build(tf, work):
    pair_type = collections.namedtuple("Pair", ["left", "right"])
    root = tf.Module()
    child = tf.Module()
    child.v = tf.Variable(3.0)
    child.f = tf.function(lambda x: x * child.v, input_signature=[tf.TensorSpec([], tf.float32)])
    root.pair = (tf.Variable(1.0), child)
    root.named = pair_type(tf.Variable(5.0), (tf.Variable(7.0),))
    root.read = tf.function(
        lambda x: x * root.pair[0] + root.named.left * root.named.right[0],
        input_signature=[tf.TensorSpec([], tf.float32)],
    )
    return root, root.read


def requests(np):
    x = np.float32(2)
    return [("serving_default", {"x": x}), ("read", (x,), {}), ("pair.1.f", (x,), {})]
