"""An object with nothing in it: no variable, no function, no signature.

`save` succeeds without signatures, and a loader must not fail on an empty checkpoint.
"""

CLAUSES = ("API-01", "API-05", "ATTR-01")
FEATURES = ("empty",)


def build(tf, work):
    return tf.Module()


def requests(np):
    return []
