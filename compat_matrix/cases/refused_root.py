"""Saving must refuse: the root is a plain Python dict, not a trackable object."""

CLAUSES = ("API-02",)
FEATURES = ("refusal",)


def build(tf, work):
    return {"v": tf.Variable(1.0)}


def requests(np):
    return []
