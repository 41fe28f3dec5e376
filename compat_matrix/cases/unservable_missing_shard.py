"""The values of the variables are missing: variables/ has an index but no data file.

An interrupted copy looks like this, or a copy that a watcher read too early.
"""

import os

CLAUSES = ("RP-08", "GOAL-09")
FEATURES = ("checkpoint", "incomplete", "serving", "refusal")
CHECKS = ("load",)


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])
    root.f = tf.function(
        lambda x: {"y": x * root.v}, input_signature=[tf.TensorSpec([2], tf.float32)]
    )
    return root, root.f


def after_save(tf, directory):
    os.remove(os.path.join(directory, "variables", "variables.data-00000-of-00001"))


def requests(np):
    return []
