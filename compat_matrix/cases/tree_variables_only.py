"""Variables without any function: the SavedModel as a checkpoint.

The same objects are saved as `tf.train.Checkpoint` would save.
"""

CLAUSES = ("FN-01", "FN-15", "PRIM-01", "PRIM-02")
FEATURES = ("variables", "checkpoint")


def build(tf, work):
    root = tf.train.Checkpoint()
    root.v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    root.child = tf.train.Checkpoint(step=tf.Variable(7, dtype=tf.int64))
    return root


def requests(np):
    return []
