"""A Keras model written by `ExportArchive`: its variables are in lists of one object.

`model.export` writes the same form, with names of inputs that depend on the release.
"""

import shutil

CLAUSES = ("IMP-04", "COMPAT-05")
FEATURES = ("keras", "signatures")


def build(tf, work):
    keras = tf.keras
    keras.backend.clear_session()
    inputs = keras.Input([2], name="x")
    dense = keras.layers.Dense(2, activation="relu", kernel_initializer="ones", name="dense")
    model = keras.Model(inputs, dense(inputs), name="model")
    spec = tf.TensorSpec([None, 2], tf.float32, "x")
    globals()["WRITTEN"] = (model, spec)
    serve = tf.function(lambda x: {"output_0": model(x)}, input_signature=[spec])
    return model, serve


def after_save(tf, directory):
    """Write the model anew in the way of Keras."""
    model, spec = WRITTEN  # noqa: F821
    shutil.rmtree(directory)
    archive = tf.keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", model.call, input_signature=[spec])
    archive.write_out(directory)


def requests(np):
    return [("serving_default", {"x": np.float32([[1, 2], [3, -5]])})]
