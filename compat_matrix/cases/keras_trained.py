"""A compiled and trained Keras 3 model: the optimizer and its variables are tracked and exported.

One step of plain SGD with momentum on exact numbers; the loaded optimizer is an inert object with
its variables.
"""

CLAUSES = ("OPT-01", "OPT-03", "IMP-04")
FEATURES = ("keras", "optimizer")
CHECKS = ("load", "signatures", "values", "reexport", "checkpoint")
REQUIRES = "tensorflow>=2.16"  # Keras 3


def build(tf, work):
    keras = tf.keras
    keras.backend.clear_session()
    model = keras.Sequential(
        [
            keras.Input([2], name="x"),
            keras.layers.Dense(1, kernel_initializer="ones", name="dense"),
        ],
        name="trained",
    )
    model.compile(keras.optimizers.SGD(0.25, momentum=0.5), "mse")
    model.train_on_batch(tf.constant([[1.0, 2.0]]), tf.constant([[1.0]]))
    return model, None, {"serving_default": lambda inputs: model(inputs)}


def requests(np):
    return [("serving_default", {"inputs": np.float32([[1, 2], [0, 4]])})]
