"""The values of the variables did not arrive: there is an index in variables/, and no file of data.

So a copy looks that was interrupted, or a watcher that came too early.
"""

import os

CLAUSES = ("RP-08", "GOAL-09")
FEATURES = ("checkpoint", "incomplete", "serving", "refusal")
CHECKS = ("load",)


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])
    root.f = tf.function(lambda x: {"y": x * root.v}, input_signature=[tf.TensorSpec([2], tf.float32)])
    return root, root.f


def after_save(tf, directory):
    os.remove(os.path.join(directory, "variables", "variables.data-00000-of-00001"))


def requests(np):
    return []
