"""A model that wraps a loaded one, both created in the scope of a distribution strategy."""

import os

CLAUSES = ("DIST-01", "DIST-02", "GOAL-02", "GOAL-06")
FEATURES = ("distribution", "variables")


def build(tf, work):
    path = os.path.join(work, "part")
    part = tf.Module()
    part.w = tf.Variable([1.0, 2.0])
    part.f = tf.function(lambda x: x * part.w, input_signature=[tf.TensorSpec([2], tf.float32)])
    tf.saved_model.save(part, path, signatures={})
    root = tf.Module()
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        root.part = tf.saved_model.load(path)
        root.factor = tf.Variable(3.0)
    root.f = tf.function(
        lambda x: root.part.f(x) * root.factor, input_signature=[tf.TensorSpec([2], tf.float32)]
    )
    return root, root.f


def requests(np):
    x = np.float32([1, 2])
    return [("serving_default", {"x": x}), ("f", (x,), {})]
