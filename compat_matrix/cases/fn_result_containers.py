"""Results in every container: list, tuple, dict, nested, empty, with None and with a single tensor.

A function that is not a signature may return any structure. OrderedDict is left out: the wire
format has only dict.
"""

CLAUSES = ("PY-05", "SIG-14", "PY-03")
FEATURES = ("functions", "nests")


def build(tf, work):
    root = tf.Module()
    spec = [tf.TensorSpec([], tf.float32)]
    results = {
        "single": lambda x: x,
        "list": lambda x: [x, x + 1.0],
        "tuple": lambda x: (x, x + 1.0),
        "one_tuple": lambda x: (x,),
        "dict": lambda x: {"z": x, "a": x + 1.0},
        "deep": lambda x: [({"k": [x, (x + 1.0,)]}, None), {"empty": (), "list": []}],
        "nothing": lambda x: None,
    }
    for name, result in results.items():
        setattr(root, name, tf.function(result, input_signature=spec, autograph=False))
    return root


def requests(np):
    names = ("single", "list", "tuple", "one_tuple", "dict", "deep", "nothing")
    return [(name, (np.float32(1),), {}) for name in names]
