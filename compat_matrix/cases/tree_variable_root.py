"""A single variable as the root of a SavedModel."""

CLAUSES = ("API-02", "FMT-11", "PRIM-01")
FEATURES = ("variables",)


def build(tf, work):
    return tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="root")


def requests(np):
    return []
