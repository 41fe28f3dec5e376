"""Trainable flags, synchronisation, aggregation, names and a constraint.

All but the constraint are stored; a loader that loses them changes which variables fine-tuning
trains.
"""

CLAUSES = ("RP-03", "GOAL-03", "DIST-03", "FMT-12")
FEATURES = ("variables", "trainable")
REFERENCE_OPTIONS = {"strict": False}  # the constraint is lost, which a strict save refuses


def build(tf, work):
    root = tf.Module()
    root.train = tf.Variable(1.0, name="train")
    root.frozen = tf.Variable(2.0, name="frozen", trainable=False)
    root.summed = tf.Variable(
        4.0,
        synchronization=tf.VariableSynchronization.ON_WRITE,
        aggregation=tf.VariableAggregation.SUM,
        name="summed",
    )
    root.constrained = tf.Variable(
        8.0, constraint=lambda v: tf.clip_by_value(v, 0.0, 9.0), name="scope/constrained"
    )
    root.total = tf.function(
        lambda x: x + root.train + root.frozen + root.summed + root.constrained,
        input_signature=[tf.TensorSpec([], tf.float32)],
    )
    return root, root.total


def requests(np):
    return [("serving_default", {"x": np.float32(16)}), ("total", (np.float32(0),), {})]
