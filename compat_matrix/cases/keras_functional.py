"""A functional Keras 3 model given to `tf.saved_model.save`: it brings its own default
signature.
"""

CLAUSES = ("IMP-04", "GOAL-09", "COMPAT-05")
FEATURES = ("keras",)
CHECKS = ("load", "signatures", "values", "reexport", "checkpoint")
REQUIRES = "tensorflow>=2.16"  # Keras 3


def build(tf, work):
    keras = tf.keras
    keras.backend.clear_session()
    inputs = keras.Input([4], name="features")
    hidden = keras.layers.Dense(3, activation="relu", kernel_initializer="ones", name="hidden")(
        inputs
    )
    outputs = keras.layers.Dense(
        2, kernel_initializer=keras.initializers.Constant(0.5), name="head"
    )(hidden)
    model = keras.Model(inputs, outputs, name="model")

    def answer(inputs):
        return model(inputs)

    return model, None, {"serving_default": answer}


def requests(np):
    return [("serving_default", {"inputs": np.arange(8, dtype=np.float32).reshape(2, 4)})]
