"""A Keras 3 model written by `model.export`, loaded and exported again with its signatures.

`model.export` gathers the variables in one plain object with the endpoints; the answers are those
of the Keras model.
"""

import os

CLAUSES = ("IMP-04", "COMPAT-05", "REX-03")
FEATURES = ("keras", "signatures", "re-export")
REQUIRES = "tensorflow>=2.16"  # Keras 3


def build(tf, work):
    keras = tf.keras
    keras.backend.clear_session()
    model = keras.Sequential(
        [
            keras.Input([4]),
            keras.layers.Dense(3, kernel_initializer="ones", name="dense"),
            keras.layers.ReLU(name="relu"),
        ]
    )
    path = os.path.join(work, "exported")
    spec = [keras.InputSpec(shape=(None, 4), dtype="float32", name="x")]
    model.export(path, verbose=False, input_signature=spec)
    loaded = tf.saved_model.load(path)
    return (
        loaded,
        dict(loaded.signatures),
        {"serving_default": lambda x: model(x), "serve": lambda x: model(x)},
    )


def requests(np):
    x = np.arange(8, dtype=np.float32).reshape(2, 4) - 8
    return [("serving_default", {"x": x}), ("serve", {"x": x}), ("serve", (x,), {})]
