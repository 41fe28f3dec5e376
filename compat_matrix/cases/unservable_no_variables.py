"""The folder variables/ is missing: the C++ loader treats the model as one without variables.

The model is served, and every request fails ("Could not find variable ...").
"""

import os
import shutil

CLAUSES = ("RP-08", "GOAL-09")
FEATURES = ("checkpoint", "incomplete", "serving", "refusal")
CHECKS = ("load", "values")
UNANSWERED = ("serving_default",)


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])
    root.f = tf.function(
        lambda x: {"y": x * root.v}, input_signature=[tf.TensorSpec([2], tf.float32)]
    )
    return root, root.f


def after_save(tf, directory):
    shutil.rmtree(os.path.join(directory, "variables"))


def requests(np):
    return [("serving_default", {"x": np.float32([1, 3])})]
