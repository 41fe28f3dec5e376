"""An op of a custom library that this TensorFlow does not know, inside the function of a signature.

To imitate it, a real op is renamed in the file to an unregistered name of the same length. The C++
loader accepts the model and fails a request; the C API already fails to load it. With such an op in
the main graph (the fixture `contrib_op`) neither loads.
"""

import os

CLAUSES = ("RP-07", "DR-05", "GOAL-09")
FEATURES = ("custom_op", "unknown_op", "serving", "refusal")
CHECKS = ("load", "values")
UNANSWERED = ("serving_default",)


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        return {"y": tf.raw_ops.Softsign(features=x) * root.v}

    root.f = f
    return root, root.f


def after_save(tf, directory):
    path = os.path.join(directory, "saved_model.pb")
    with open(path, "rb") as stream:
        data = stream.read()
    # Rename the op in its nodes and in the list of ops. No length changes, so the message stays
    # well-formed.
    with open(path, "wb") as stream:
        stream.write(data.replace(b"Softsign", b"Acme>Mix"))


def requests(np):
    return [("serving_default", {"x": np.float32([1, -3])})]
