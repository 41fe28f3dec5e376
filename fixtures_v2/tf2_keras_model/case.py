"""A Keras model given to `tf.saved_model.save`: Keras 2 until TF 2.15, Keras 3 from 2.16 on."""

CLAUSES = ("IMP-04", "GOAL-09", "COMPAT-05")
FEATURES = ("keras",)


def build(tf, work):
    keras = tf.keras
    keras.backend.clear_session()
    inputs = keras.Input([2], name="features")
    dense = keras.layers.Dense(2, activation="relu", kernel_initializer="ones", name="dense")
    model = keras.Model(inputs, dense(inputs), name="model")

    # Keras 2 and 3 derive other names for the tensors of a signature.
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "features")])
    def serve(features):
        return {"scores": model(features)}

    return model, serve


def requests(np):
    return [("serving_default", {"features": np.float32([[1, 2], [3, -5]])})]
