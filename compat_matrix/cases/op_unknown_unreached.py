"""An op that no TensorFlow knows, in a function that no signature reaches.

Sessions and servers import the main graph and the functions it calls: they load the model and
answer. `tf.saved_model.load` imports every function and refuses the model. See
`unservable_unknown_op` for such an op in a function that a signature calls.
"""

import os

CLAUSES = ("RP-07", "DR-05", "COMPAT-02")
FEATURES = ("custom_op", "unknown_op", "version_skew")
CHECKS = ("load", "values")


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable(2.0)
    spec = [tf.TensorSpec([None], tf.float32)]
    root.f = tf.function(lambda x: {"y": x * root.v}, input_signature=spec)
    root.other = tf.function(lambda x: tf.raw_ops.Softsign(features=x), input_signature=spec)
    return root, root.f


def after_save(tf, directory):
    path = os.path.join(directory, "saved_model.pb")
    with open(path, "rb") as stream:
        data = stream.read()
    with open(path, "wb") as stream:
        stream.write(
            data.replace(b"Softsign", b"Acme>Mix")
        )  # the same length, so that the message stays well-formed


def requests(np):
    return [("serving_default", {"x": np.float32([1, -3])})]
