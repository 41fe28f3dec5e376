"""Every kind of output a signature may have: one tensor, a list, a tuple, a dict, a namedtuple,
constants, the input itself.

Sequences are numbered from zero; dicts and namedtuples provide the names. One function is exported
under two keys.
"""

import collections

CLAUSES = ("SIG-08", "SIG-10", "SIG-11", "SIG-15", "SIG-17")
FEATURES = ("signatures", "nests")


def build(tf, work):
    pair = collections.namedtuple("Pair", ["left", "right"])
    root = tf.Module()
    root.v = tf.Variable(2.0)
    spec = [tf.TensorSpec([None], tf.float32)]
    results = {
        "single": lambda x: x * root.v,
        "list": lambda x: [x, x * root.v],
        "tuple": lambda x: (x + 1.0,),
        "dict": lambda x: {"z": x + 1.0, "a": x * root.v},
        "named": lambda x: pair(left=x, right=x * root.v),
        "constants": lambda x: {"number": tf.constant(3), "text": tf.constant("three"), "x": x},
        "same_twice": lambda x: [x, x],
    }
    root.functions = {
        name: tf.function(f, input_signature=spec, autograph=False) for name, f in results.items()
    }
    return root, dict(root.functions, again=root.functions["single"])


def requests(np):
    x = np.float32([1, 2])
    names = ("single", "list", "tuple", "dict", "named", "constants", "same_twice", "again")
    return [(name, {"x": x}) for name in names]
