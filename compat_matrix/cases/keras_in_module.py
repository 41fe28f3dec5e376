"""A Keras 3 model inside a tf.Module.

It runs in Python and fails in a session ("Could not find variable ..."): the signature does not
read the handles that the restore function assigns.
"""

CLAUSES = ("GOAL-09", "RP-08", "GOAL-02")
FEATURES = ("keras", "signatures")
CHECKS = ("load", "signatures", "values", "reexport", "checkpoint")
REQUIRES = "tensorflow>=2.16"  # Keras 3


def build(tf, work):
    keras = tf.keras
    keras.backend.clear_session()
    root = tf.Module()
    root.model = keras.Sequential(
        [keras.Input([2]), keras.layers.Dense(2, kernel_initializer="ones", name="dense")]
    )
    root.serve = tf.function(
        lambda x: root.model(x) * 2.0, input_signature=[tf.TensorSpec([None, 2], tf.float32)]
    )
    return root, root.serve


def requests(np):
    x = np.float32([[1, 2]])
    return [("serving_default", {"x": x}), ("serve", (x,), {})]
