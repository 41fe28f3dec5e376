"""Variables created under a distribution strategy, saved within its scope: the export loads without
a strategy.
"""

CLAUSES = ("DIST-02", "DIST-03", "DIST-04")
FEATURES = ("distribution", "variables")


def build(tf, work):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    root = tf.Module()
    with strategy.scope():
        root.mirrored = tf.Variable([1.0, 2.0])
        root.on_read = tf.Variable(
            3.0,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.MEAN,
        )
    root.f = tf.function(
        lambda x: x * root.mirrored + root.on_read, input_signature=[tf.TensorSpec([2], tf.float32)]
    )
    return root, root.f


def requests(np):
    x = np.float32([1, 2])
    return [("serving_default", {"x": x}), ("f", (x,), {})]
